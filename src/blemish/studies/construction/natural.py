"""Does robustness to synthetic corruptions predict robustness to natural ones? (Syn2Nat paper, Algorithm 2)

Over a group of models, the residual robustness A_iid − A_P to a natural set is correlated with the mean residual
robustness to the corruptions of a synthetic benchmark. All benchmarks, natural sets and resamples are computed at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.core.rng import check_seed
from blemish.core.statistics import Estimate, check_level
from blemish.studies.construction.tables import CLEAN, AccuracyTable

Floats = NDArray[np.floating[Any]]
"""Numbers of single or double precision."""

_LEAST_MODELS = 4
_MOST_MISSING = 0.05


@dataclass(frozen=True)
class NaturalCorrelation:
    """Correlations (benchmarks × natural sets) over models, with p-values and percentile intervals over models.

    ``low`` and ``high`` are None where no resamples were asked for. ``group`` summarises all benchmarks together.
    """

    natural: tuple[str, ...]
    correlations: Floats
    p_values: Floats
    low: Floats | None
    high: Floats | None
    group: tuple[GroupCorrelation, ...]
    models: int
    level: float


@dataclass(frozen=True)
class GroupCorrelation:
    """Algorithm 2's result for one natural set: the mean over the group, the mean p-value and an interval."""

    natural: str
    mean: float
    p_value: float
    low: float | None
    high: float | None


def mean_residuals(table: AccuracyTable, benchmarks: Sequence[Sequence[str]], *, clean: str = CLEAN) -> Floats:
    """Mean residual robustness A_clean − A_c over each benchmark's corruptions, (models, benchmarks)."""
    if not benchmarks:
        raise InputError("no benchmarks; expected at least one")
    names = list(dict.fromkeys(name for benchmark in benchmarks for name in benchmark))
    weights = np.zeros((len(names), len(benchmarks)))
    number = {name: i for i, name in enumerate(names)}
    for column, benchmark in enumerate(benchmarks):
        if not benchmark or len(set(benchmark)) != len(benchmark):
            raise InputError(f"benchmark {column + 1} is empty or holds a corruption twice; expected different ones")
        weights[[number[name] for name in benchmark], column] = 1 / len(benchmark)
    return np.asarray((table.columns([clean]) - table.columns(names)) @ weights)


def natural_residuals(table: AccuracyTable, natural: Mapping[str, str]) -> Floats:
    """Residual robustness to natural sets, (models, sets): each set's column with the column of its clean counterpart.

    A set of 200 of the 1000 classes has its own clean accuracy: that on clean images of these classes.
    """
    if not natural:
        raise InputError("no natural sets; expected at least one")
    return table.columns(list(natural.values())) - table.columns(list(natural))


def correlate_with_natural(
    synthetic: Floats,
    natural: Floats,
    *,
    names: Sequence[str],
    control: Floats | None = None,
    resamples: int = 0,
    level: float = 0.95,
    seed: int = 0,
) -> NaturalCorrelation:
    """Pearson correlations over models of every benchmark's scores with every natural set's.

    ``synthetic`` is (models, benchmarks) and ``natural`` (models, sets), usually from `mean_residuals` and
    `natural_residuals`; ImageNet-P enters with its mFR, of which more is worse as well. With ``control``, one number
    per model such as its clean accuracy, correlations are partial: of what remains of both after a linear fit on it.
    p-values are two-sided, from Student's t. ``resamples`` draws models with replacement.
    """
    _check_scores(synthetic, natural, names, control, level)
    models = len(synthetic)
    freedom = models - 2 - (control is not None)
    correlations = _correlations(np.ones((models, 1)), synthetic, natural, control)[..., 0].T
    low = high = None
    means: list[tuple[float | None, float | None]] = [(None, None)] * len(names)
    if resamples:
        low, high, means = _intervals(synthetic, natural, control, resamples, level, seed)
    p_values = _p_values(correlations, freedom)
    group = tuple(
        GroupCorrelation(name, float(correlations[:, i].mean()), float(p_values[:, i].mean()), *means[i])
        for i, name in enumerate(names)
    )
    return NaturalCorrelation(tuple(names), correlations, p_values, low, high, group, models, level)


def compare_groups(
    first: Floats,
    second: Floats,
    natural: Floats,
    *,
    control: Floats | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """The second group's mean correlation less the first's, with an interval that compares both on the same models.

    All arguments are as in `correlate_with_natural`. Groups share models, so that a difference between them is known
    far better than either of them.
    """
    names = [str(number) for number in range(natural.shape[-1])]
    for synthetic in (first, second):
        _check_scores(synthetic, natural, names, control, level)
    weights = np.hstack([np.ones((len(natural), 1), dtype=np.float32), _drawn(len(natural), resamples, seed)])
    means = [_correlations(weights, group, natural, control).mean(axis=(0, 1)) for group in (first, second)]
    differences = means[1] - means[0]
    known = differences[1:][~np.isnan(differences[1:])]
    if len(known) < (1 - _MOST_MISSING) * resamples:
        raise InputError("in too many resamples a score is constant; expected more models")
    low, high = _quantiles(known, ((1 - level) / 2, (1 + level) / 2))
    return Estimate(float(differences[0]), float(low), float(high))


def _drawn(models: int, resamples: int, seed: int) -> Floats:
    """How often each model is drawn in each resample, (models, resamples); single precision will do for intervals."""
    if resamples < 2:
        raise InputError(f"{resamples} resamples; expected at least 2, better 1000")
    draw = np.random.default_rng(check_seed(seed, least=0))
    return draw.multinomial(models, np.full(models, 1 / models), size=resamples).T.astype(np.float32)


def _check_scores(
    synthetic: Floats, natural: Floats, names: Sequence[str], control: Floats | None, level: float
) -> None:
    if synthetic.ndim != 2 or natural.ndim != 2 or len(synthetic) != len(natural) or natural.shape[1] != len(names):
        raise InputError(
            f"scores of shape {synthetic.shape} and {natural.shape} for {len(names)} natural sets; expected models × "
            "benchmarks and models × sets over the same models"
        )
    if len(synthetic) < _LEAST_MODELS:
        raise InputError(f"{len(synthetic)} models; expected at least {_LEAST_MODELS} to correlate over")
    if control is not None and control.shape != (len(synthetic),):
        raise InputError(f"a control of shape {control.shape}; expected one number for each of {len(synthetic)} models")
    check_level(level)
    columns = [
        ("benchmark", synthetic),
        ("natural set", natural),
        *([("control", control[:, None])] if control is not None else []),
    ]
    for what, values in columns:
        if not np.isfinite(values).all():
            raise InputError(f"a score of a {what} that is not a finite number; expected numbers")
        constant = np.flatnonzero(np.ptp(values, axis=0) == 0)
        if constant.size:
            raise InputError(f"all models score the same on {what} {constant[0] + 1}; expected scores that differ")


def _correlations(weights: Floats, first: Floats, second: Floats, control: Floats | None) -> Floats:
    """Weighted Pearson correlations (columns of second, columns of first, draws); partial if there is a control.

    ``weights`` (models, draws) says how often each model was drawn. NaN where a drawn column is constant.
    """
    weights = weights / weights.sum(axis=0)
    kind = weights.dtype
    first, second = _standardised(first, kind), _standardised(second, kind)
    plain = _weighted(weights, first, second)
    if control is None:
        return plain
    with_control = _standardised(control[:, None], kind)
    one, other = _weighted(weights, first, with_control), _weighted(weights, second, with_control)
    other = np.swapaxes(other, 0, 1)
    plain -= one * other
    with np.errstate(divide="ignore", invalid="ignore"):
        plain /= np.sqrt(1 - one**2)
        plain /= np.sqrt(1 - other**2)
    return plain


def _standardised(values: Floats, kind: np.dtype[Any]) -> Floats:
    """Columns of mean 0 and deviation 1, against cancellation in what follows."""
    return np.asarray((values - values.mean(axis=0)) / values.std(axis=0)).astype(kind)


def _weighted(weights: Floats, first: Floats, second: Floats) -> Floats:
    mean_one, mean_two = first.T @ weights, second.T @ weights
    scale_one = np.sqrt(np.maximum((first.T**2) @ weights - mean_one**2, 0))
    scale_two = np.sqrt(np.maximum((second.T**2) @ weights - mean_two**2, 0))
    correlations = np.empty((second.shape[1], first.shape[1], weights.shape[1]), dtype=weights.dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        for i, column in enumerate(second.T):
            np.matmul((first * column[:, None]).T, weights, out=correlations[i])
            correlations[i] -= mean_one * mean_two[i]
            correlations[i] /= scale_one
            correlations[i] /= scale_two[i]
    return np.clip(correlations, -1, 1, out=correlations)


def _p_values(correlations: Floats, freedom: int) -> Floats:
    """Two-sided p-values: for r over f degrees of freedom, r √(f / (1 − r²)) follows Student's t."""
    special = optional_import("scipy.special")
    return np.asarray(special.betainc(freedom / 2, 0.5, 1 - correlations**2))


def _intervals(
    synthetic: Floats, natural: Floats, control: Floats | None, resamples: int, level: float, seed: int
) -> tuple[Floats, Floats, list[tuple[float | None, float | None]]]:
    """Percentile intervals of every correlation, and of the mean over the benchmarks."""
    weights = _drawn(len(synthetic), resamples, seed)
    correlations = _correlations(weights, synthetic, natural, control)
    means = correlations.mean(axis=1)
    missing = float(np.isnan(means).mean(axis=1).max())
    if missing > _MOST_MISSING:
        raise InputError(f"in {100 * missing:.0f} % of the resamples a score is constant; expected more models")
    keep = ~np.isnan(means).any(axis=0)
    if not keep.all():
        correlations, means = correlations[..., keep], means[:, keep]
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = _quantiles(correlations, tails)
    mean_low, mean_high = _quantiles(means, tails)
    return low.T, high.T, [(float(a), float(b)) for a, b in zip(mean_low, mean_high, strict=True)]


def _quantiles(values: Floats, tails: tuple[float, float]) -> list[Floats]:
    """`np.quantile` over the last axis, by partial sorting, which is several times faster here."""
    positions = [tail * (values.shape[-1] - 1) for tail in tails]
    needed = sorted({int(position) for position in positions} | {int(np.ceil(position)) for position in positions})
    ordered = np.partition(values, needed, axis=-1)
    quantiles = []
    for position in positions:
        below = int(position)
        part = position - below
        quantiles.append(ordered[..., below] * (1 - part) + ordered[..., int(np.ceil(position))] * part)
    return quantiles
