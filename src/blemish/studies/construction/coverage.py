"""What a benchmark covers, and how evenly it weighs its corruptions (NOC paper, sections 5.2 and 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from blemish.core.errors import InputError
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.overlap import LEAST_GAIN, robustness_scores
from blemish.studies.construction.tables import CLEAN, STANDARD, AccuracyTable, check_names

COVERING_SCORE = 0.3
"""The score above which the paper takes a corruption to be covered by another."""


@dataclass(frozen=True)
class Covered:
    """The member of a benchmark that overlaps a corruption most, if any score with it is defined."""

    corruption: str
    by: str | None
    score: float
    covered: bool


def coverage_by_overlap(
    matrix: OverlapMatrix, benchmark: Sequence[str], *, threshold: float = COVERING_SCORE
) -> list[Covered]:
    """For every corruption outside the benchmark, the member that overlaps it most; covered if above the threshold."""
    check_names(list(benchmark), "corruption")
    if not 0 <= threshold <= 1:
        raise InputError(f"a covering score of {threshold:g}; expected a number from 0 to 1")
    columns = [matrix.index(name) for name in benchmark]
    covered = []
    for name in matrix.names:
        if name in benchmark:
            continue
        scores = matrix.scores[matrix.index(name), columns]
        if np.isnan(scores).all():
            covered.append(Covered(name, None, float("nan"), False))
            continue
        best = int(np.nanargmax(scores))
        covered.append(Covered(name, benchmark[best], float(scores[best]), bool(scores[best] > threshold)))
    if not covered:
        raise InputError("the benchmark holds every corruption of the matrix; expected some outside it to cover")
    return covered


@dataclass(frozen=True)
class Gained:
    """What training on a whole benchmark did to the robustness score for one corruption."""

    corruption: str
    standard: float
    trained: float
    covered: bool

    @property
    def gain(self) -> float:
        """The rise of the robustness score above the standard model's."""
        return self.trained - self.standard


def coverage_by_training(
    table: AccuracyTable,
    model: str,
    *,
    standard: str = STANDARD,
    corruptions: Sequence[str] | None = None,
    clean: str = CLEAN,
    least_gain: float = LEAST_GAIN,
) -> list[Gained]:
    """For every corruption, whether ``model``, trained on all of a benchmark, is more robust to it than ``standard``.

    Covered means a gain of the robustness score of at least ``least_gain``.
    """
    names = [name for name in table.settings if name != clean] if corruptions is None else list(corruptions)
    part = table.only(models=[standard, model], settings=[clean, *names])
    before, after = robustness_scores(part, clean=clean)[:, 1:]
    return [
        Gained(name, float(low), float(high), bool(high - low >= least_gain))
        for name, low, high in zip(names, before, after, strict=True)
    ]


def mean_corruption_errors(
    table: AccuracyTable,
    *,
    baseline: str,
    models: Sequence[str] | None = None,
    corruptions: Sequence[str] | None = None,
    clean: str = CLEAN,
    relative: bool = True,
) -> dict[str, float]:
    """The mCE in percent of every model, errors relative to a baseline row of the table.

    What the NOC paper calls CE is the relative one, (E_c − E_clean) / (E_c^base − E_clean^base); with
    ``relative=False`` it is E_c / E_c^base. The mean is over the corruptions.
    """
    names = [name for name in table.settings if name != clean] if corruptions is None else list(corruptions)
    chosen = [model for model in table.models if model not in (baseline, STANDARD)] if models is None else list(models)
    part = table.only(models=[baseline, *chosen], settings=[clean, *names])
    errors = 1 - part.values
    rises = errors[:, 1:] - errors[:, :1] if relative else errors[:, 1:]
    if (rises[0] <= 0).any():
        name = names[int(np.flatnonzero(rises[0] <= 0)[0])]
        raise InputError(f"{baseline} loses nothing under {name}; expected a rise of its error to divide by")
    return {m: float(v) for m, v in zip(chosen, 100 * (rises[1:] / rises[0]).mean(axis=1), strict=True)}


@dataclass(frozen=True)
class Balance:
    """The spread of one-corruption models' mCE: the smaller, the more evenly a benchmark weighs its corruptions."""

    scores: Mapping[str, float]
    std: float
    range: float


def balance(scores: Mapping[str, float]) -> Balance:
    """Population standard deviation and range of the mCE of models trained on one corruption each.

    >>> balance({"fog": 80.0, "snow": 90.0}).std
    5.0
    """
    if len(scores) < 2:
        raise InputError(f"the mCE of {len(scores)} models; expected at least two")
    values = np.array(list(scores.values()))
    if not np.isfinite(values).all():
        raise InputError("an mCE that is not a finite number; expected numbers")
    return Balance(dict(scores), float(values.std()), float(values.max() - values.min()))


def balance_by(table: AccuracyTable, *, baseline: str, relative: bool = True) -> Callable[[Sequence[str]], float]:
    """A function from a set of corruptions to its balance: the standard deviation of the mCE of their own models.

    The mCE of a model is over the set; see `mean_corruption_errors`. A single corruption is balanced.
    """

    def deviation(names: Sequence[str]) -> float:
        if len(names) < 2:
            return 0.0
        scores = mean_corruption_errors(table, baseline=baseline, models=names, corruptions=names, relative=relative)
        return balance(scores).std

    return deviation
