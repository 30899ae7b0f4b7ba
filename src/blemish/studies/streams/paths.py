"""Paths over a calibration surface: from one corruption alone to the other alone, at a given accuracy all along.

A path runs from (s₁, 0) to (0, s₂). Each step lowers the severity of the first corruption or raises that of the second
by one step of the grid. Start and end are free, but for severity 0. Three rules choose among all paths:

- ``mean``: the exact optimum of the paper's objective, |mean accuracy − target|. With accuracies as whole numbers of
  correct images the sums along paths are whole numbers too, and all sums that can be reached are kept for every cell,
  as the bits of one long integer. The length of a path is fixed by its ends, so the best sum is the best mean.
- ``reference``: the release's rule. From the end backwards it keeps one partial mean per cell, the nearer to the
  target of the two it could keep. That is greedy: the best path may go through a worse partial mean.
- ``pointwise``: the smallest mean absolute deviation from the target, by an exact dynamic programme.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.studies.streams.surface import Surface

__all__ = ["OBJECTIVES", "Objective", "SeverityPath", "find_path"]

Objective = Literal["mean", "reference", "pointwise"]
OBJECTIVES: tuple[str, ...] = get_args(Objective)

Cell = tuple[int, int]

_FINEST = 10_000
"""Accuracies that are not whole numbers of images, such as interpolated ones, are rounded to a ten-thousandth."""


@dataclass(frozen=True)
class SeverityPath:
    """Cells of a surface from the first corruption alone to the second alone.

    ``mean`` is the mean accuracy along it and ``deviation`` the mean absolute deviation from the target.
    """

    first: str
    second: str
    cells: tuple[Cell, ...]
    severities: tuple[tuple[float, float], ...]
    accuracies: tuple[float, ...]
    target: float
    objective: Objective

    @property
    def mean(self) -> float:
        """The mean accuracy along the path."""
        return float(np.mean(self.accuracies))

    @property
    def deviation(self) -> float:
        """The mean absolute deviation of the accuracy from the target."""
        return float(np.mean(np.abs(np.array(self.accuracies) - self.target)))


def find_path(surface: Surface, target: float, *, objective: Objective = "pointwise") -> SeverityPath:
    """The path that holds the accuracy nearest to the target, by the rule that is asked for."""
    if not 0 <= target <= 1:
        raise InputError(f"target accuracy {target:g}; expected a share in 0 … 1, such as 0.4 for 40 %")
    if objective not in _RULES:
        raise InputError(f"unknown path objective {objective!r}; expected one of {', '.join(OBJECTIVES)}")
    cells = _RULES[objective](surface, target)
    return SeverityPath(
        surface.first,
        surface.second,
        tuple(cells),
        tuple((surface.grid[a], surface.grid[b]) for a, b in cells),
        tuple(float(surface.accuracy[cell]) for cell in cells),
        target,
        objective,
    )


def _counts(surface: Surface) -> tuple[NDArray[np.int64], int]:
    """Accuracies as whole numbers of units, and the units in 1."""
    for units in (surface.images, 2 * surface.images):  # the repair of a surface halves counts
        whole = np.rint(surface.accuracy * units)
        if np.abs(surface.accuracy * units - whole).max() < 1e-6 and units <= 4 * _FINEST:
            return whole.astype(np.int64), units
    return np.rint(surface.accuracy * _FINEST).astype(np.int64), _FINEST


def _reachable(counts: NDArray[np.int64], start: int) -> dict[Cell, int]:
    """For every cell the sums of all paths to it from (start, 0), as the bits that are set."""
    sums: dict[Cell, int] = {}
    for a in range(start, -1, -1):
        for b in range(counts.shape[1]):
            # The last row belongs to ends alone: no path goes on along it.
            before = sums.get((a + 1, b), 0) | (sums.get((a, b - 1), 0) if a > 0 else 0)
            if (a, b) == (start, 0):
                before = 1
            sums[a, b] = before << int(counts[a, b])
    return sums


def _nearest_bit(bits: int, wanted: Fraction) -> int:
    """The set bit nearest to a number; the lower of two."""
    split = max(0, int(wanted) + 1)
    below, above = bits & ((1 << split) - 1), bits >> split
    candidates = [below.bit_length() - 1] if below else []
    if above:
        candidates.append(split + (above & -above).bit_length() - 1)
    return min(candidates, key=lambda bit: (abs(bit - wanted), bit))


def _mean_path(surface: Surface, target: float) -> list[Cell]:
    counts, units = _counts(surface)
    side = len(counts)
    goal = Fraction(target) * units
    options = []
    for start in range(1, side):
        sums = _reachable(counts, start)
        for end in range(1, side):
            length = start + end + 1
            total = _nearest_bit(sums[0, end], goal * length)
            options.append((abs(Fraction(total, length) - goal), start, end, total))
    _, start, end, total = min(options, key=lambda option: option[0])
    return _retraced(counts, _reachable(counts, start), (0, end), total, float(goal))


def _retraced(counts: NDArray[np.int64], sums: dict[Cell, int], end: Cell, total: int, goal: float) -> list[Cell]:
    """A path with this sum; where two ways lead to it, over the cell that is nearer to the target."""
    cells, here, left = [end], end, total
    while True:
        left -= int(counts[here])
        a, b = here
        before = [(a + 1, b)] + ([(a, b - 1)] if a > 0 and b > 0 else [])
        ways = [cell for cell in before if cell in sums and left >= 0 and (sums[cell] >> left) & 1]
        if not ways:
            return cells[::-1]
        here = min(ways, key=lambda cell: abs(float(counts[cell]) - goal))
        cells.append(here)


def _reference_path(surface: Surface, target: float) -> list[Cell]:
    values = surface.accuracy.tolist()
    side = len(values)
    kept: dict[Cell, tuple[float, list[Cell]]] = {(0, b): (values[0][b], [(0, b)]) for b in range(side)}
    for a in range(1, side):
        for b in range(side - 1, -1, -1):
            # Raising the second corruption wins ties, and lowering the first is all that is left at the edge.
            options = [kept[a, b + 1]] if b + 1 < side else []
            options.append(kept[a - 1, b])
            total, path = min(options, key=lambda kept: abs((kept[0] + values[a][b]) / (len(kept[1]) + 1) - target))
            kept[a, b] = (total + values[a][b], [(a, b), *path])
    starts = (kept[a, 0] for a in range(1, side))
    return min(starts, key=lambda kept: abs(kept[0] / len(kept[1]) - target))[1]


def _pointwise_path(surface: Surface, target: float) -> list[Cell]:
    cost = np.abs(surface.accuracy - target).tolist()
    side = len(cost)
    best: tuple[float, list[Cell]] = (float("inf"), [])
    for start in range(1, side):
        cheapest = _cheapest(cost, start)
        for end in range(1, side):
            total, path = cheapest[0, end]
            if total / len(path) < best[0]:
                best = total / len(path), path
    return best[1]


def _cheapest(cost: list[list[float]], start: int) -> dict[Cell, tuple[float, list[Cell]]]:
    """For every cell the path from (start, 0) to it with the least sum of costs, and that sum."""
    kept: dict[Cell, tuple[float, list[Cell]]] = {(start, 0): (cost[start][0], [(start, 0)])}
    for a in range(start, -1, -1):
        for b in range(len(cost)):
            above, left = (
                kept.get((a + 1, b)),
                kept.get((a, b - 1)) if a else None,
            )  # nothing goes on along the last row
            before = above if left is None or (above is not None and above[0] < left[0]) else left
            if before is not None:
                kept[a, b] = (before[0] + cost[a][b], [*before[1], (a, b)])
    return kept


_RULES: dict[str, Callable[[Surface, float], list[Cell]]] = {
    "mean": _mean_path,
    "reference": _reference_path,
    "pointwise": _pointwise_path,
}
