"""Error consistency: do two observers fail on the same images, more than their accuracies make them?

Geirhos, Meding and Wichmann, Beyond accuracy: quantifying trial-by-trial behaviour of CNNs and humans by measuring
error consistency, NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.benchmarks.condition import CLEAN, read_condition
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.resampling import Bootstrap, stream_of
from blemish.core.statistics import Estimate, percentile_interval
from blemish.metrics.table import Table


def cohen_kappa(agreement: ArrayLike, first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """κ = (c_obs − c_exp) / (1 − c_exp), with c_exp = p₁p₂ + (1 − p₁)(1 − p₂).

    ``agreement`` is the share of images on which both are right or both wrong, ``first`` and ``second`` are the two
    accuracies. 1 where they always agree, as the authors define it; 0 is what independent errors give.

    >>> round(float(cohen_kappa(0.8, 0.6, 0.6)), 4)
    0.5833
    """
    observed, one, other = (np.asarray(values, dtype=np.float64) for values in (agreement, first, second))
    expected = one * other + (1 - one) * (1 - other)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappa = (observed - expected) / (1 - expected)
    return np.asarray(np.where(observed == 1, 1.0, kappa))


@dataclass(frozen=True)
class Agreement:
    """Under one condition: κ with its interval, the share of images on which both agree, and both accuracies."""

    condition: str
    kappa: Estimate
    observed: float
    accuracies: tuple[float, float]


@dataclass(frozen=True)
class Consistency:
    """Two models: κ under each condition, its mean over those of each corruption, and over all but the clean images.

    ``people`` is the mean of κ between people over the levels that are published, where the benchmark names some.
    """

    mean: Estimate
    corruptions: dict[str, Estimate]
    conditions: tuple[Agreement, ...]
    people: float | None = None


def error_consistency(
    one: Table,
    other: Table,
    *,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    people: float | None = None,
    report: ProgressReport = tell_nobody,
) -> Consistency | None:
    """κ between two models whose tables hold the same images; None where neither saw corrupted ones, or has shares.

    Intervals are those of the bootstrap over images. As the authors do, κ is taken within each condition and then
    averaged: over all conditions together, easy and hard ones alone would make any two models agree.
    """
    texts = [
        text
        for (kind, text), right in one.columns.items()
        if kind == "correct" and ("correct", text) in other.columns and right.dtype == np.bool_
    ]
    columns: dict[tuple[str, str], NDArray[Any]] = {}
    for text in texts:
        right, also = one.columns["correct", text], other.columns["correct", text]
        columns |= {("agree", text): right == also, ("one", text): right, ("other", text): also}
    groups: dict[str, list[str]] = {}
    for text in texts:
        if text != str(CLEAN):
            groups.setdefault(read_condition(text).group, []).append(text)
    if not groups:
        return None
    draws = Bootstrap(len(one.images), replicates, seed, stream_of(one.name)).means(columns, report=report)
    point = {key: float(np.mean(values)) for key, values in columns.items()}
    kappas: dict[str, _Sample] = {}
    for text in texts:
        keys = [(kind, text) for kind in ("agree", "one", "other")]
        kappas[text] = float(cohen_kappa(*(point[k] for k in keys))), cohen_kappa(*(draws[k] for k in keys))
    return Consistency(
        mean=_mean([kappas[text] for members in groups.values() for text in members], level),
        corruptions={group: _mean([kappas[text] for text in members], level) for group, members in groups.items()},
        conditions=tuple(
            Agreement(
                text, _mean([kappas[text]], level), point["agree", text], (point["one", text], point["other", text])
            )
            for text in texts
        ),
        people=people,
    )


_Sample = tuple[float, NDArray[np.float64]]


def _mean(samples: Sequence[_Sample], level: float) -> Estimate:
    value = float(np.mean([sample[0] for sample in samples]))
    return percentile_interval(value, np.mean([sample[1] for sample in samples], axis=0), level=level)
