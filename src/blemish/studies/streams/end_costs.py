"""The best path over a surface for every pair of ends, by a rule that has an exact optimum.

A path begins at (s₁, 0) and ends at (0, s₂), both severities above 0. What it costs depends on the rule:

- ``pointwise``: the mean absolute deviation of its accuracies from the target.
- ``mean``: |mean accuracy − target|; among paths with equal means, the mean absolute deviation breaks the tie. With
  accuracies as whole numbers of correct images the sums along paths are whole numbers too. For every cell all sums that
  can be reached are kept, each with the least deviation of a path that has it. The length of a path is fixed by its
  ends, so the best sum is the best mean.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.studies.streams.surface import Surface

Cell = tuple[int, int]

Whole = NDArray[Any]
"""Whole numbers: of int64 where they fit, otherwise of Python's own."""

BILLION = 1_000_000_000
NEVER = 2**30
"""The cost where no path exists: more than any walk costs, and in billionths small enough to be added to itself."""

_FINEST = 10_000
"""Accuracies that are not whole numbers of images, such as interpolated ones, are rounded to a ten-thousandth."""


class EndCosts(ABC):
    """What the best paths of a surface cost: ``cost[i, j]`` from severity i + 1 of the grid to severity j + 1.

    Equal costs are told apart by ``tie``. Both are infinite where no path exists. ``whole`` are the costs counted in
    ``parts`` of 1, so that they can be added up without rounding; where ``exact``, the counts are not rounded either.
    With ``measured_only``, paths keep to cells that were measured; there has to be one.
    """

    exact: ClassVar[bool]
    cost: NDArray[np.float64]
    tie: NDArray[np.float64]
    whole: Whole
    parts: int

    def __init__(self, surface: Surface, target: float, *, measured_only: bool = False) -> None:
        self.allowed = surface.known if measured_only else np.ones_like(surface.accuracy, dtype=np.bool_)
        self.side = len(surface.grid)
        self._measure(surface, target)
        if not np.isfinite(self.cost).any():
            raise InputError(
                f"no path from {surface.first} to {surface.second} over measured cells only; calibrate more of them"
            )

    def best(self) -> Cell:
        """The grid's numbers of the ends that cost least; the lower ones of several."""
        tied = np.where(self.cost == self.cost.min(), self.tie, np.inf)
        start, end = np.unravel_index(int(tied.argmin()), tied.shape)
        return int(start) + 1, int(end) + 1

    @abstractmethod
    def _measure(self, surface: Surface, target: float) -> None:
        """Fill in ``cost``, ``tie``, ``whole`` and ``parts``."""

    @abstractmethod
    def cells(self, start: int, end: int) -> list[Cell]:
        """The best path between two ends."""

    def _before(self, cell: Cell, start: int) -> list[Cell]:
        """From where a path that begins at (start, 0) can come to a cell; the first is preferred."""
        a, b = cell
        # The last row belongs to ends alone: no path goes on along it.
        left = [(a, b - 1)] if a > 0 and b > 0 else []
        return left + ([(a + 1, b)] if a < start else [])


class PointwiseCosts(EndCosts):
    """The least mean absolute deviations, counted in billionths."""

    exact = False

    def _measure(self, surface: Surface, target: float) -> None:
        deviation = np.where(self.allowed, np.abs(surface.accuracy - target), np.inf)
        numbers = np.arange(self.side)
        # Least sums for all starts at once: an entry per start.
        self._sums: dict[Cell, NDArray[np.float64]] = {}
        for a in range(self.side - 1, -1, -1):
            for b in range(self.side):
                sums = np.full(self.side, np.inf)
                if b == 0 and a > 0:
                    sums[a] = 0.0
                for cell in self._before((a, b), self.side - 1):
                    sums = np.minimum(sums, self._sums[cell])
                self._sums[a, b] = sums + deviation[a, b]
        totals = np.stack([self._sums[0, end] for end in range(1, self.side)], axis=1)[1:]
        self.cost = totals / (numbers[1:, None] + numbers[None, 1:] + 1)
        self.tie = np.where(np.isfinite(self.cost), 0.0, np.inf)
        self.whole, self.parts = billionths(self.cost), BILLION

    def cells(self, start: int, end: int) -> list[Cell]:
        """The path between two ends that deviates least."""
        path = [(0, end)]
        while path[-1] != (start, 0):
            path.append(min(self._before(path[-1], start), key=lambda cell: float(self._sums[cell][start])))
        return path[::-1]


class _Sums:
    """The sums that paths to a cell can have, from ``low`` on, and the least deviation for each; infinite for none."""

    def __init__(self, low: int, deviation: NDArray[np.float64]) -> None:
        self.low, self.deviation = low, deviation

    def at(self, total: int) -> float:
        """The least deviation of a path with this sum."""
        inside = 0 <= total - self.low < len(self.deviation)
        return float(self.deviation[total - self.low]) if inside else np.inf

    def joined(self, other: _Sums) -> _Sums:
        """The sums of either."""
        low = min(self.low, other.low)
        high = max(self.low + len(self.deviation), other.low + len(other.deviation))
        both = np.full(high - low, np.inf)
        for sums in (self, other):
            part = both[sums.low - low :][: len(sums.deviation)]
            np.minimum(part, sums.deviation, out=part)
        return _Sums(low, both)

    def nearest(self, wanted: Fraction) -> tuple[Fraction, float, int] | None:
        """How far the nearest sum is from a number, the least deviation of a path with it, and the sum."""
        sums = np.flatnonzero(np.isfinite(self.deviation)) + self.low
        if not len(sums):
            return None
        nearest = int(np.searchsorted(sums, float(wanted)))
        around = sums[max(0, nearest - 2) : nearest + 2].tolist()
        return min((abs(total - wanted), self.at(total), total) for total in around)


class MeanCosts(EndCosts):
    """The least deviations of means, and the least mean absolute deviations among paths that have them.

    Means are fractions whose denominators are the lengths of paths, so costs are counted in parts of a multiple of all
    of them: rounded, 1/3 + 1/3 would be less than 2/3, and a tie between walks would not be seen.
    """

    exact = True

    def _measure(self, surface: Surface, target: float) -> None:
        self._counts, units = _counts(surface)
        # The number that was meant, and not the binary one next to it: 0.4 of 5,000 images are 2,000.
        self._goal = Fraction(target).limit_denominator(1_000_000) * units
        self.cost = np.full((self.side - 1, self.side - 1), np.inf)
        self.tie = self.cost.copy()
        self.parts = units * self._goal.denominator * math.lcm(*range(3, 2 * self.side))
        self.whole = np.full(self.cost.shape, NEVER * self.parts, dtype=object)
        self._totals: dict[Cell, int] = {}
        for start in range(1, self.side):
            reached = self._reached(start)
            for end in range(1, self.side):
                length = start + end + 1
                nearest = reached[0, end].nearest(self._goal * length) if (0, end) in reached else None
                if nearest is not None:
                    distance, deviation, self._totals[start, end] = nearest
                    cost = distance / (length * units)
                    self.cost[start - 1, end - 1] = float(cost)
                    self.whole[start - 1, end - 1] = int(cost * self.parts)
                    self.tie[start - 1, end - 1] = deviation / (length * units)

    def _reached(self, start: int) -> dict[Cell, _Sums]:
        """For every cell the sums of all paths to it from (start, 0)."""
        reached: dict[Cell, _Sums] = {}
        goal = float(self._goal)
        for a in range(start, -1, -1):
            for b in range(self.side):
                ways = [reached[cell] for cell in self._before((a, b), start) if cell in reached]
                if (a, b) == (start, 0):
                    ways = [_Sums(0, np.zeros(1))]
                if ways and self.allowed[a, b]:
                    before = ways[0] if len(ways) == 1 else ways[0].joined(ways[1])
                    count = int(self._counts[a, b])
                    reached[a, b] = _Sums(before.low + count, before.deviation + abs(count - goal))
        return reached

    def cells(self, start: int, end: int) -> list[Cell]:
        """The path between two ends whose mean is nearest to the target; of several, the one that deviates least."""
        reached = self._reached(start)
        path, left = [(0, end)], self._totals[start, end]
        while path[-1] != (start, 0):
            left -= int(self._counts[path[-1]])
            ways = [cell for cell in self._before(path[-1], start) if cell in reached]
            path.append(min(ways, key=lambda cell: reached[cell].at(left)))
        return path[::-1]


def _counts(surface: Surface) -> tuple[NDArray[np.int64], int]:
    """Accuracies as whole numbers of units, and the units in 1."""
    for units in (surface.images, 2 * surface.images):  # the repair of a surface halves counts
        whole = np.rint(surface.accuracy * units)
        if np.abs(surface.accuracy * units - whole).max() < 1e-6 and units <= 4 * _FINEST:
            return whole.astype(np.int64), units
    return np.rint(surface.accuracy * _FINEST).astype(np.int64), _FINEST


def billionths(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Numbers rounded to whole billionths; `NEVER` for infinite ones."""
    whole = np.where(np.isfinite(values), np.rint(values * BILLION), NEVER * BILLION)
    return whole.astype(np.int64)
