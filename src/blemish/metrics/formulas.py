"""The formulas of the literature, over arrays whose leading axes are free: one sample, or many resamples at once.

All results are ratios or rates: 1 means 100 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.core.errors import InputError

Array = NDArray[Any]

HIGHEST_CLEAN_ERROR = 0.99
"""Above it, the rise of the error means nothing."""

LEAST_RISE = 0.005
"""By how much a baseline's error has to rise before that is divided by."""


def relative_to(values: ArrayLike, baseline: float, *, what: str = "value") -> Array:
    """Values divided by a baseline's, which has to be above zero.

    FR = FP / FP of the baseline, and T5D = uT5D / uT5D of the baseline (Hendrycks and Dietterich 2019).

    >>> float(relative_to(0.1, 0.2))
    0.5
    """
    if not baseline > 0:
        raise InputError(f"the baseline's {what} is {baseline:g}; expected more than 0 to divide by")
    return np.asarray(values, dtype=np.float64) / baseline


def _severities(errors: ArrayLike, baseline: ArrayLike) -> tuple[Array, float]:
    """Means over severities; a baseline without severities is a mean already."""
    values, base = np.asarray(errors, dtype=np.float64), np.asarray(baseline, dtype=np.float64)
    if values.ndim == 0 or base.ndim > 1 or (base.ndim == 1 and base.shape != values.shape[-1:]):
        raise InputError(
            f"errors of shape {values.shape} against a baseline of shape {base.shape}; "
            "expected (…, severities) against (severities,) or a mean over them"
        )
    return values.mean(-1), float(base.mean())


def corruption_error(errors: ArrayLike, baseline: ArrayLike) -> Array:
    """CE = Σ_s E_s / Σ_s E_s of the baseline (Hendrycks and Dietterich 2019).

    ``errors`` is (…, severities), ``baseline`` (severities,) or a single mean over the same severities.

    >>> float(corruption_error([0.25, 0.5], [0.5, 1.0]))
    0.5
    """
    mean, base = _severities(errors, baseline)
    return relative_to(mean, base, what="mean error")


def relative_corruption_error(
    errors: ArrayLike, clean: ArrayLike, baseline: ArrayLike, *, baseline_clean: float
) -> Array:
    """Relative CE = Σ_s (E_s − E_clean) / Σ_s (E_s − E_clean) of the baseline (Hendrycks and Dietterich 2019).

    This is what the NOC paper (Laugros, Caplier and Ospici) calls CE: its printed values are reached no other way.
    Not a number where the clean error is above 99 %, since nothing is left to rise and 0 would look like robustness. A
    baseline whose error rises by less than half a point is refused: whatever is divided by it can be anything.

    >>> round(float(relative_corruption_error([0.3, 0.5], 0.2, [0.6, 0.8], baseline_clean=0.5)), 12)
    1.0
    """
    mean, base = _severities(errors, baseline)
    rise, start = base - baseline_clean, np.asarray(clean, dtype=np.float64)
    if 0 < rise < LEAST_RISE:
        raise InputError(
            f"the baseline's error rises by {100 * rise:.2g} points above its clean error; expected at least "
            f"{100 * LEAST_RISE:g} to divide by"
        )
    relative = relative_to(mean - start, rise, what="rise of the error above its clean error")
    return np.where(start > HIGHEST_CLEAN_ERROR, np.nan, relative)


def class_hits(correct: ArrayLike, labels: ArrayLike) -> NDArray[np.float32]:
    """For each image and class whether it is of that class and answered correctly, and whether it is of it: (N, 2 K).

    Means of these, over images or over any resample of them, are all that `balanced_accuracy` needs.
    """
    present, which = np.unique(np.asarray(labels), return_inverse=True)
    member = np.zeros((len(which), len(present)), dtype=np.float32)
    member[np.arange(len(which)), which.ravel()] = 1
    return np.concatenate([member * np.asarray(correct)[:, None], member], axis=1, dtype=np.float32)


def balanced_accuracy(hits: ArrayLike) -> Array:
    """The mean recall over classes, from means of `class_hits` (…, 2 K). A class that is not among the images is none.

    >>> float(balanced_accuracy(class_hits([True, True, False, True], [0, 0, 1, 1]).mean(0)))
    0.75
    """
    correct, images = np.split(np.asarray(hits, dtype=np.float64), 2, axis=-1)
    seen = images > 0
    recalls = np.where(seen, correct, 0) / np.where(seen, images, 1)
    return np.asarray(recalls.sum(-1) / seen.sum(-1))


def mean_corruption_error(errors: Mapping[str, ArrayLike], baseline: Mapping[str, ArrayLike]) -> Array:
    """mCE: the mean CE of all corruptions. Both mappings hold the same corruptions.

    >>> float(mean_corruption_error({"fog": [0.2], "snow": [0.3]}, {"fog": [0.4], "snow": [0.4]}))
    0.625
    """
    _check_same(errors, baseline)
    return _mean(corruption_error(values, baseline[name]) for name, values in errors.items())


def mean_relative_corruption_error(
    errors: Mapping[str, ArrayLike], clean: ArrayLike, baseline: Mapping[str, ArrayLike], *, baseline_clean: float
) -> Array:
    """Relative mCE: the mean relative CE of all corruptions. Both mappings hold the same corruptions."""
    _check_same(errors, baseline)
    return _mean(
        relative_corruption_error(values, clean, baseline[name], baseline_clean=baseline_clean)
        for name, values in errors.items()
    )


def mean_flip_rate(flips: Mapping[str, ArrayLike], baseline: Mapping[str, float]) -> Array:
    """mFR: the mean of FP / FP of the baseline over all sequences; with top-5 distances, mT5D."""
    _check_same(flips, baseline)
    return _mean(relative_to(values, baseline[name], what=f"value for {name}") for name, values in flips.items())


def robustness_score(accuracy: ArrayLike, clean: ArrayLike) -> Array:
    """R = A_c / A_clean (Laugros, Caplier and Ospici). Not finite where the clean accuracy is 0.

    >>> float(robustness_score(0.4, 0.8))
    0.5
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.asarray(accuracy, dtype=np.float64) / np.asarray(clean, dtype=np.float64))


def residual_robustness(accuracy: ArrayLike, clean: ArrayLike) -> Array:
    """A_clean − A_c, the accuracy that is lost (Syn2Nat: Laugros, Caplier and Ospici). Less is better."""
    return np.asarray(clean, dtype=np.float64) - np.asarray(accuracy, dtype=np.float64)


def _mean(values: Iterable[Array]) -> Array:
    return np.asarray(np.mean(np.stack(list(values)), axis=0))


def _check_same(values: Mapping[str, Any], baseline: Mapping[str, Any]) -> None:
    if not values:
        raise InputError("nothing to average; expected at least one corruption or sequence")
    for missing, where in ((set(values) - set(baseline), "the baseline"), (set(baseline) - set(values), "the results")):
        if missing:
            raise InputError(f"nothing for {', '.join(sorted(missing))} in {where}; expected the same in both")
