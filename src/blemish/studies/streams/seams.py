"""Ends of paths that meet: the paths of a whole walk chosen together, so that severities do not jump between them.

Where one path ends on corruption B alone, the next begins on B alone, but on its own each would choose its severity of
B freely. Here the sum over the walk of what its paths cost (see `end_costs`) and of ``weight`` times the jump of
severity at each seam is made as small as it can be, by a shortest path (Viterbi's algorithm) over the ends of one path
after the other. A closed walk has one more seam, from its end to its beginning. Of several choices that cost the same,
the one with the least sum of `EndCosts.tie`, in billionths, is taken.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.studies.streams.end_costs import BILLION, NEVER, Cell, EndCosts, Whole, billionths

SEAM_WEIGHT = 0.04
"""A jump by one step of the usual grid, 0.25, costs as much as a path that is one point farther from the target."""

Ints = NDArray[np.int64]


def check_weight(weight: float) -> None:
    """Refuse a weight of jumps that is none."""
    if not 0 <= weight <= 100:
        raise InputError(f"a seam weight of {weight:g}; expected a number in 0 … 100")


class _Best(NamedTuple):
    """For every severity that paths may begin with (rows) and end with: the least cost, its tie, and how many steps.

    Costs are whole numbers of parts of 1, which `Chain` knows, and ties are billionths.
    """

    cost: Whole
    tie: Ints
    steps: Ints

    def followed(self, after: _Best) -> _Best:
        """The sums with what follows: (beginning, where both meet, end)."""
        return _Best(*(one[:, :, None] + other[None] for one, other in zip(self, after, strict=True)))

    def taken(self, index: Ints, axis: int) -> _Best:
        """The entries at one index along an axis, which goes away."""
        where = np.expand_dims(index, axis)
        return _Best(*(np.take_along_axis(values, where, axis).squeeze(axis) for values in self))

    def least(self, axis: int) -> Ints:
        """Where along an axis the least cost is; of equal ones, the least tie; then the first."""
        lowest = self.cost == self.cost.min(axis, keepdims=True)
        index: Ints = np.where(lowest, self.tie, NEVER * BILLION).argmin(axis).astype(np.int64)
        return index


class Chain:
    """Paths one after the other, with the cheapest choice of all their ends so far.

    Costs are counted in whole parts of 1, so that sums are not rounded. Costs that are exact (see `EndCosts`) are
    counted in parts that the jumps have too, and then ties between walks are exact as well.
    """

    def __init__(self, grid: tuple[float, ...], *, weight: float = SEAM_WEIGHT, closed: bool = False) -> None:
        check_weight(weight)
        # The numbers that were meant, and not the binary ones next to them: 0.04, and thirds of 5.
        severities = [Fraction(severity).limit_denominator(1_000_000) for severity in grid[1:]]
        exactly = Fraction(repr(float(weight)))
        self._jumps = [[exactly * abs(one - other) for other in severities] for one in severities]
        self._parts_of_jumps = math.lcm(*(jump.denominator for row in self._jumps for jump in row))
        self._closed = closed
        self._parts = 1
        self._seam: _Best
        self._best: _Best | None = None
        self._back: list[tuple[Ints, Ints]] = []

    def _count_in(self, parts: int) -> None:
        """Count costs in finer parts: a multiple of those of now."""
        jumps = [[round(jump * parts) for jump in row] for row in self._jumps]
        cost: Whole = np.array(jumps, dtype=_dtype(parts))
        nothing = np.zeros(cost.shape, dtype=np.int64)
        self._seam = _Best(cost, nothing, nothing)
        if self._best is not None:
            self._best = self._best._replace(cost=self._best.cost.astype(_dtype(parts)) * (parts // self._parts))
        self._parts = parts

    def extend(self, costs: EndCosts) -> None:
        """Let another path follow."""
        parts = math.lcm(self._parts, costs.parts, self._parts_of_jumps if costs.exact else 1)
        if parts != self._parts:
            self._count_in(parts)
        numbers = np.arange(1, costs.side)
        own = _Best(
            costs.whole.astype(_dtype(parts)) * (parts // costs.parts),
            billionths(costs.tie),
            (numbers[:, None] + numbers[None, :] + 1).astype(np.int64),
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
        best = along.taken(starts, axis=1)
        self._best = best._replace(cost=np.minimum(best.cost, NEVER * parts), tie=np.minimum(best.tie, NEVER * BILLION))
        self._back.append((ends, starts))

    def _finished(self) -> tuple[_Best, int]:
        """What the whole costs for every beginning and end, over the seam of a closed walk too, and where the best is.

        It is a number of an entry, all rows one after the other.
        """
        if self._best is None:
            raise InputError("no paths to choose the ends of; expected at least one")
        # From the end (column) to the beginning (row); jumps are the same both ways.
        cost = self._best.cost + self._seam.cost if self._closed else self._best.cost
        flat = _Best(cost.ravel(), self._best.tie.ravel(), self._best.steps.ravel())
        return flat, int(flat.least(axis=0))

    @property
    def objective(self) -> float:
        """What the best choice costs."""
        best, index = self._finished()
        return float(Fraction(int(best.cost[index]), self._parts))

    @property
    def steps(self) -> int:
        """How many steps its paths have together."""
        best, index = self._finished()
        return int(best.steps[index])

    def ends(self) -> list[Cell]:
        """The grid's numbers of the severities that each path begins and ends with."""
        _, index = self._finished()
        first, end = divmod(index, len(self._jumps))
        chosen: list[Cell] = []
        for ends, starts in reversed(self._back):
            start = int(starts[first, end])
            chosen.append((start + 1, end + 1))
            end = int(ends[first, start])
        return [(first + 1, end + 1), *reversed(chosen)]


def _dtype(parts: int) -> type:
    """Billionths fit into 64 bits, finer parts may not."""
    return np.int64 if parts <= BILLION else object
