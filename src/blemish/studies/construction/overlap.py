"""Overlapping scores: does training on one corruption make a model robust to another? (NOC paper, equation 2)

All models share an architecture and a training protocol; ``standard`` saw clean images only, every other one also
images with the corruption it is named after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.resampling import Bootstrap
from blemish.core.statistics import check_level
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.tables import CLEAN, STANDARD, AccuracyTable

LEAST_GAIN = 0.01
"""By how much training on a corruption has to raise the robustness score for it before that gain is divided by."""

Floats = NDArray[np.float64]


def robustness_scores(table: AccuracyTable, *, clean: str = CLEAN) -> Floats:
    """R = A_c / A_clean for every model (row) and column of the table.

    >>> table = AccuracyTable(("standard",), ("clean", "fog"), np.array([[0.8, 0.6]]))
    >>> robustness_scores(table).round(2).tolist()
    [[1.0, 0.75]]
    """
    accuracies = table.columns([clean])
    if (accuracies == 0).any():
        model = table.models[int(np.flatnonzero(accuracies[:, 0] == 0)[0])]
        raise InputError(f"model {model} has accuracy 0 under {clean}; expected more, since robustness divides by it")
    return np.asarray(table.values / accuracies)


def overlap_matrix(
    table: AccuracyTable,
    *,
    corruptions: Sequence[str] | None = None,
    clean: str = CLEAN,
    least_gain: float = LEAST_GAIN,
) -> OverlapMatrix:
    """The overlapping scores of all pairs of corruptions.

    O = max{0, ½ (ΔR_c2^m1 / ΔR_c2^m2 + ΔR_c1^m2 / ΔR_c1^m1)} where ΔR is the robustness score less the standard
    model's. The table needs the columns ``clean`` and one per corruption, and the rows ``standard`` and one per
    corruption; other rows do not matter. A score is undefined where training on a corruption hardly helped against it.
    """
    names = _names(table, corruptions, clean)
    if not 0 < least_gain < 1:
        raise InputError(f"a least gain of {least_gain:g}; expected a number between 0 and 1")
    part = table.only(models=[STANDARD, *names], settings=[clean, *names])
    robustness = robustness_scores(part, clean=clean)[:, 1:]
    scores, gains = _scores(robustness, least_gain)
    reasons: dict[tuple[str, str], str] = {}
    for c, gain in enumerate(gains):
        if gain < least_gain:
            before, after = robustness[0, c], robustness[c + 1, c]
            reason = (
                f"training on {names[c]} changed the robustness score for it by {gain:+.4f} only ({before:.3f} to "
                f"{after:.3f}; at least {least_gain:g} is needed to divide by)"
            )
            reasons |= {(names[c], other): reason for other in names if (other, names[c]) not in reasons}
    return OverlapMatrix(tuple(names), scores, reasons)


def _names(table: AccuracyTable, corruptions: Sequence[str] | None, clean: str) -> list[str]:
    """The corruptions to compare, each with a column and a row."""
    table.column(clean)
    names = [name for name in table.settings if name != clean] if corruptions is None else list(corruptions)
    if len(names) < 2:
        raise InputError(f"{len(names)} corruptions; expected at least two to compare")
    untrained = [name for name in [STANDARD, *names] if name not in table.models]
    if untrained:
        what = "the rows " if len(untrained) > 1 else "a row "
        raise InputError(
            f"the table lacks {what}{', '.join(untrained)}; expected {STANDARD} and one model trained on each "
            "corruption, named like its column (or name the corruptions to compare)"
        )
    return names


def _scores(robustness: Floats, least_gain: float) -> tuple[Floats, Floats]:
    """Scores (…, C, C), NaN where undefined, and gains on the own corruption (…, C) from R (…, 1 + C, C)."""
    gains = robustness[..., 1:, :] - robustness[..., :1, :]
    own = np.diagonal(gains, axis1=-2, axis2=-1)
    usable = np.where(own < least_gain, np.nan, own)
    ratios = gains / usable[..., None, :]
    halves = (ratios + np.swapaxes(ratios, -1, -2)) / 2
    return np.where(np.isnan(halves), np.nan, np.maximum(halves, 0)), own


@dataclass(frozen=True)
class OverlapIntervals:
    """Percentile intervals of overlapping scores: ``low`` and ``high`` are NaN where too few resamples define a score.

    ``undefined_share`` is the share of resamples in which a pair's score was undefined.
    """

    matrix: OverlapMatrix
    low: Floats
    high: Floats
    undefined_share: Floats
    level: float


def overlap_intervals(
    correct: NDArray[np.bool_],
    models: Sequence[str],
    settings: Sequence[str],
    *,
    corruptions: Sequence[str] | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    clean: str = CLEAN,
    least_gain: float = LEAST_GAIN,
) -> OverlapIntervals:
    """Overlapping scores with intervals from resampled test images.

    ``correct[m, s, i]`` says whether model m classified image i correctly under setting s; all models and settings saw
    the same images, which are drawn again with replacement, jointly for all of them. Models and settings are named as
    in `overlap_matrix`; by default all settings are corruptions to compare.
    """
    check_level(level)
    scores, matrix = resampled_scores(
        correct,
        models,
        settings,
        corruptions=corruptions,
        resamples=resamples,
        seed=seed,
        clean=clean,
        least_gain=least_gain,
    )
    missing = np.isnan(scores).mean(axis=0)
    low, high = np.full((2, *missing.shape), np.nan)
    known, tail = missing <= 1 - level, (1 - level) / 2
    if known.any():
        low[known], high[known] = np.nanquantile(scores[:, known], [tail, 1 - tail], axis=0)
    return OverlapIntervals(matrix, low, high, missing, level)


def resampled_scores(
    correct: NDArray[np.bool_],
    models: Sequence[str],
    settings: Sequence[str],
    *,
    corruptions: Sequence[str] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    clean: str = CLEAN,
    least_gain: float = LEAST_GAIN,
) -> tuple[Floats, OverlapMatrix]:
    """Scores of resampled test images, (resamples, C, C) with NaN where undefined, and the matrix of all images.

    See `overlap_intervals`.
    """
    correct = np.asarray(correct)
    _check_correct(correct, models, settings)
    if resamples < 2:
        raise InputError(f"{resamples} resamples; expected at least 2, better 1000")
    table = AccuracyTable(tuple(models), tuple(settings), correct.mean(axis=2))
    names = _names(table, corruptions, clean)
    matrix = overlap_matrix(table, corruptions=names, clean=clean, least_gain=least_gain)
    rows = [table.row(name) for name in (STANDARD, *names)]
    columns = [table.column(name) for name in (clean, *names)]
    used = correct[np.ix_(rows, columns)]
    flat = Bootstrap(correct.shape[2], resamples, seed).accuracies(used.reshape(-1, correct.shape[2]).T)
    accuracies = flat.reshape(resamples, len(rows), len(columns))
    with np.errstate(divide="ignore", invalid="ignore"):  # a resample without a correct clean image is undefined
        robustness = accuracies[..., 1:] / accuracies[..., :1]
        scores, _ = _scores(robustness, least_gain)
    scores[~np.isfinite(scores)] = np.nan
    return scores, matrix


def _check_correct(correct: NDArray[np.bool_], models: Sequence[str], settings: Sequence[str]) -> None:
    if correct.dtype != np.bool_:
        raise InputError(f"correctness as {correct.dtype}; expected true or false for every model, setting and image")
    if correct.ndim != 3 or correct.shape[:2] != (len(models), len(settings)) or not correct.shape[2]:
        raise InputError(
            f"correctness of shape {correct.shape}; expected {len(models)} models × {len(settings)} settings × images"
        )
