"""Can images made on the fly stand in for a set that somebody else made? Cell by cell, with intervals and verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.benchmark import STORAGES
from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.core.resampling import Bootstrap
from blemish.core.statistics import Estimate, check_level, percentile_interval
from blemish.data.cache import load
from blemish.data.images import Images
from blemish.data.stored import StoredSet
from blemish.metrics.formulas import Array
from blemish.models.base import Classifier
from blemish.studies.equivalence.copies import STATISTICS, Measured, Pixels, measure_cell
from blemish.studies.equivalence.verdicts import (
    FEWEST,
    Verdict,
    bounded_interval,
    judge,
    judge_excess,
    mean_interval,
    overall,
    paired_interval,
)

SAME_SHARE = 0.995
"""Copies are the same where this share of their values differs by at most one grey level."""

LEAST_TOLERANCE = 0.5
"""Differences of up to half a grey level are never held against a statistic."""


@dataclass(frozen=True)
class Contrast:
    """A number of both sets and the difference, ours minus theirs, with its interval; judged against ``margin``.

    Of ``distance``, theirs is the distance between the sets, pixel by pixel, ours that between two draws of ours (0
    where the pixels are the same, so that the draws are, too), and the difference is the first minus the second.
    """

    name: str
    theirs: float
    ours: float
    difference: Estimate
    margin: float
    verdict: Verdict


@dataclass(frozen=True)
class Side:
    """A cell with ours stored in one way: all statistics, what they come to, and the accuracies of a model."""

    statistics: tuple[Contrast, ...]
    images: Verdict
    close: float
    accuracy: Contrast | None = None


@dataclass(frozen=True)
class Cell:
    """A corruption at a severity, by storage."""

    condition: Condition
    sides: dict[str, Side]
    example: Pixels


@dataclass(frozen=True)
class Equivalence:
    """All cells. ``storage`` is the one that suits their set; ``mean`` is the accuracy over all cells, by storage."""

    theirs: str
    data: str
    images: int
    storage: str
    cells: tuple[Cell, ...]
    margin: float
    tolerance: float
    level: float
    seed: int
    preset: str | None
    model: str | None = None
    mean: dict[str, Contrast] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    def verdicts(self, what: str, storage: str | None = None) -> list[Verdict]:
        """The verdict of every cell on ``images`` or on ``accuracy``."""
        sides = [cell.sides[storage or self.storage] for cell in self.cells]
        if what == "images":
            return [side.images for side in sides]
        return [side.accuracy.verdict for side in sides if side.accuracy is not None]

    def images_needed(self) -> int | None:
        """About how many images would make half of the undecided accuracies' intervals as narrow as ± the margin."""
        accuracies = [accuracy for cell in self.cells if (accuracy := cell.sides[self.storage].accuracy) is not None]
        halves = [item.difference.width / 2 for item in accuracies if item.verdict is Verdict.UNDECIDED]
        return math.ceil(self.images * (float(np.median(halves)) / self.margin) ** 2) if halves else None


def equivalence(
    clean: Images,
    other: StoredSet,
    cells: Sequence[Condition],
    *,
    storage: str = "raw",
    model: Classifier | None = None,
    margin: float = 1.0,
    tolerance: float = 0.05,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    preset: str | None = None,
    batch_size: int | None = None,
    skipped: Sequence[str] = (),
    report: Callable[[str, int], None] | None = None,
) -> Equivalence:
    """Our copies of the clean images against those of another set, for some of its conditions.

    ``margin`` is how far accuracies may lie apart, in points. ``tolerance`` is how far statistics may, as a share of
    the mean distance of their copies from the clean images; half a grey level at least. ``storage`` is how ours have to
    be stored to be compared fairly. ``report`` is told of each cell before it is measured.
    """
    check_level(level)
    if storage not in STORAGES:
        raise InputError(f"unknown storage {storage!r}; expected {' or '.join(STORAGES)}")
    if not margin > 0 or not tolerance > 0:
        raise InputError(f"a margin of {margin:g} points, a tolerance of {tolerance:g}; expected more than 0")
    if not cells:
        raise InputError("no cells to compare; expected at least one")
    for cell in cells:
        cell.check_files()
    groups = list(dict.fromkeys(cell.group for cell in cells))
    compared, gains = [], dict.fromkeys(STORAGES, np.zeros(len(clean), np.int64))
    accuracies = dict.fromkeys(("theirs", *STORAGES), 0.0)
    for number, cell in enumerate(cells):
        if report is not None:
            report(str(cell), number)
        measured = measure_cell(
            cell,
            clean,
            load(other.source(str(cell), like=clean)),
            seed=seed,
            preset=preset,
            model=model,
            batch_size=batch_size,
            shown=groups.index(cell.group) % len(clean),
        )
        compared.append(_cell(measured, len(cells), margin=margin, tolerance=tolerance, level=level))
        if measured.theirs.correct is not None:
            accuracies["theirs"] += measured.theirs.correct.mean() / len(cells)
            for name, copies in measured.ours.items():
                correct = _known(copies.correct)
                gains[name] = gains[name] + correct.astype(np.int64) - measured.theirs.correct
                accuracies[name] += correct.mean() / len(cells)
    mean = {}
    if model is not None:
        for name in STORAGES:
            values = (100 * accuracies["theirs"], 100 * accuracies[name])
            if all(_is_same(cell.sides[name].accuracy) for cell in compared):
                mean[name] = _no_difference("accuracy", *values, margin)
            else:
                mean[name] = _mean(gains[name] / len(cells), *values, margin, level, replicates)
    return Equivalence(
        theirs=other.name,
        data=clean.name,
        images=len(clean),
        storage=storage,
        cells=tuple(compared),
        margin=margin,
        tolerance=tolerance,
        level=level,
        seed=seed,
        preset=preset,
        model=None if model is None else model.name,
        mean=mean,
        skipped=tuple(skipped),
    )


def _known(correct: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    assert correct is not None
    return correct


def _no_difference(name: str, theirs: float, ours: float, margin: float) -> Contrast:
    """Of the same pixels: whoever looks at them sees the same, so that there is nothing to estimate."""
    return Contrast(name, theirs, ours, Estimate(0.0, 0.0, 0.0), margin, Verdict.SAME)


def _is_same(contrast: Contrast | None) -> bool:
    return contrast is not None and contrast.verdict is Verdict.SAME


def _mean(gains: Array, theirs: float, ours: float, margin: float, level: float, replicates: int) -> Contrast:
    """The mean over cells: images are resampled with all their cells.

    Resamples of images that are nearly all alike are alike, and say nothing: then it is the score interval.
    """
    _, counts = np.unique(gains, return_counts=True)
    if len(gains) - counts.max() < FEWEST:
        difference = bounded_interval(gains, level=level).scaled(100)
    else:
        means = Bootstrap(len(gains), replicates).means({"gain": gains})["gain"]
        difference = percentile_interval(100 * float(gains.mean()), 100 * means, level=level)
    return Contrast("accuracy", theirs, ours, difference, margin, judge(difference, difference, margin))


def _cell(measured: Measured, cells: int, *, margin: float, tolerance: float, level: float) -> Cell:
    sides = {
        storage: _side(measured, storage, cells, margin=margin, tolerance=tolerance, level=level)
        for storage in measured.ours
    }
    return Cell(measured.condition, sides, measured.example)


def _side(measured: Measured, storage: str, cells: int, *, margin: float, tolerance: float, level: float) -> Side:
    theirs, ours = measured.theirs, measured.ours[storage]
    allowed = max(LEAST_TOLERANCE, tolerance * float(theirs.statistics["change"].mean()))
    close, identical = measured.close[storage], measured.identical[storage]
    same = close >= SAME_SHARE
    pairs = {name: (theirs.statistics[name], ours.statistics[name]) for name in STATISTICS}
    # The sign: a set that is farther from ours than another draw of ours has a positive difference. The same pixels are
    # the same draws, of which no distance is expected.
    expected = np.zeros_like(measured.spread[storage]) if same else measured.spread[storage]
    pairs["distance"] = (expected, measured.distance[storage])
    widened = 1 - (1 - level) / (cells * len(pairs))
    statistics = []
    for name, (before, after) in pairs.items():
        values = (float(before.mean()), float(after.mean()))
        shown = values[::-1] if name == "distance" else values
        if identical:
            statistics.append(_no_difference(name, *shown, allowed))
            continue
        difference = mean_interval(after - before, level=level)
        rule = judge_excess if name == "distance" else judge
        verdict = Verdict.SAME if same else rule(difference, mean_interval(after - before, level=widened), allowed)
        statistics.append(Contrast(name, *shown, difference, allowed, verdict))
    return Side(
        statistics=tuple(statistics),
        images=Verdict.SAME if same else overall([item.verdict for item in statistics]),
        close=close,
        accuracy=None
        if ours.correct is None
        else _accuracy(_known(theirs.correct), ours.correct, cells, identical, margin=margin, level=level),
    )


def _accuracy(
    theirs: NDArray[np.bool_], ours: NDArray[np.bool_], cells: int, identical: bool, *, margin: float, level: float
) -> Contrast:
    values = (100 * float(theirs.mean()), 100 * float(ours.mean()))
    # A model that says now this, now that of the same pixels is not to be taken at its word.
    if identical and np.array_equal(theirs, ours):
        return _no_difference("accuracy", *values, margin)
    counts = int((ours & ~theirs).sum()), int((theirs & ~ours).sum()), len(ours)
    difference, widened = (paired_interval(*counts, level=at).scaled(100) for at in (level, 1 - (1 - level) / cells))
    return Contrast("accuracy", *values, difference, margin, judge(difference, widened, margin))
