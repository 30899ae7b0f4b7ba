"""Ends of paths that meet: the paths of a whole walk chosen together, so that severities do not jump between them.

Where one path ends on corruption B alone, the next begins on B alone, but on its own each would choose its severity of
B freely. Here the sum over the walk of what its paths cost (see `end_costs`) and of ``weight`` times the jump of
severity at each seam is made as small as it can be, by a shortest path (Viterbi's algorithm) over the ends of one path
after the other. A closed walk has one more seam, from its end to its beginning.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.studies.streams.end_costs import Cell, EndCosts

__all__ = ["SEAM_WEIGHT", "Chain", "check_weight"]

SEAM_WEIGHT = 0.04
"""A jump by one step of the usual grid, 0.25, costs as much as a path that is one point farther from the target."""

_BILLION = 1_000_000_000
_NEVER = 2**60
"""More than any walk costs, and small enough to be added to itself."""

Ints = NDArray[np.int64]


def check_weight(weight: float) -> None:
    """Refuse a weight of jumps that is none."""
    if not 0 <= weight <= 100:
        raise InputError(f"a seam weight of {weight:g}; expected a number in 0 … 100")


class _Best(NamedTuple):
    """For every severity that paths may begin with (rows) and end with: the least cost, its tie, and how many steps."""

    cost: Ints
    tie: Ints
    steps: Ints

    def followed(self, after: _Best) -> _Best:
        """The sums with what follows: (beginning, where both meet, end)."""
        return _Best(
            _sum(self.cost[:, :, None], after.cost[None]),
            _sum(self.tie[:, :, None], after.tie[None]),
            self.steps[:, :, None] + after.steps[None],
        )

    def taken(self, index: Ints, axis: int) -> _Best:
        """The entries at one index along an axis, which goes away."""
        where = np.expand_dims(index, axis)
        return _Best(*(np.take_along_axis(values, where, axis).squeeze(axis) for values in self))

    def least(self, axis: int) -> Ints:
        """Where along an axis the least cost is; of equal ones, the least tie; then the first."""
        lowest = self.cost == self.cost.min(axis, keepdims=True)
        place: Ints = np.where(lowest, self.tie, _NEVER).argmin(axis).astype(np.int64)
        return place


class Chain:
    """Paths one after the other, with the cheapest choice of all their ends so far.

    Costs are counted in billionths, so that sums are exact and ties are ties.
    """

    def __init__(self, grid: tuple[float, ...], *, weight: float = SEAM_WEIGHT, closed: bool = False) -> None:
        check_weight(weight)
        severities = np.array(grid[1:])
        jump = _billionths(weight * np.abs(severities[:, None] - severities[None, :]))
        self._seam = _Best(jump, np.zeros_like(jump), np.zeros_like(jump))
        self._closed = closed
        self._best: _Best | None = None
        self._back: list[tuple[Ints, Ints]] = []

    def extend(self, costs: EndCosts) -> None:
        """Let another path follow."""
        numbers = np.arange(1, costs.side)
        own = _Best(
            _billionths(costs.cost), _billionths(costs.tie), (numbers[:, None] + numbers[None, :] + 1).astype(np.int64)
        )
        if self._best is None:
            self._best = own
            return
        # Over the seam: the best end of the last path for every start of this one.
        over = self._best.followed(self._seam)
        ends = over.least(axis=1)
        # Along the path: its best start for every end.
        along = over.taken(ends, axis=1).followed(own)
        starts = along.least(axis=1)
        self._best = along.taken(starts, axis=1)
        self._back.append((ends, starts))

    def _finished(self) -> tuple[_Best, int]:
        """What the whole costs for every beginning and end, over the seam of a closed walk too, and where the best is.

        It is a number of an entry, all rows one after the other.
        """
        if self._best is None:
            raise InputError("no paths to choose the ends of; expected at least one")
        # From the end (column) to the beginning (row); jumps are the same both ways.
        cost = _sum(self._best.cost, self._seam.cost) if self._closed else self._best.cost
        flat = _Best(cost.ravel(), self._best.tie.ravel(), self._best.steps.ravel())
        return flat, int(flat.least(axis=0))

    @property
    def objective(self) -> float:
        """What the best choice costs."""
        best, place = self._finished()
        return float(best.cost[place]) / _BILLION

    @property
    def steps(self) -> int:
        """How many steps its paths have together."""
        best, place = self._finished()
        return int(best.steps[place])

    def ends(self) -> list[Cell]:
        """The grid's numbers of the severities that each path begins and ends with."""
        _, place = self._finished()
        first, end = divmod(place, len(self._seam.cost))
        chosen: list[Cell] = []
        for ends, starts in reversed(self._back):
            start = int(starts[first, end])
            chosen.append((start + 1, end + 1))
            end = int(ends[first, start])
        return [(first + 1, end + 1), *reversed(chosen)]


def _sum(one: Ints, other: Ints) -> Ints:
    total: Ints = np.minimum(one + other, _NEVER)
    return total


def _billionths(values: NDArray[np.float64]) -> Ints:
    whole = np.where(np.isfinite(values), np.rint(values * _BILLION), _NEVER)
    return whole.astype(np.int64)
