"""What a search looks for: the closest pairs of each two classes, or each point's nearest point of another class.

A goal hands every tile of the search a view of its own. Tiles run side by side, but their views are opened and merged
in a fixed order, so that a result never depends on timing or on the number of threads.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Found = tuple[float, int, int]


def _grouped(codes: Codes) -> tuple[Codes, Codes]:
    """The classes that occur, and which of them each point has; mostly there is only one."""
    if (codes == codes[0]).all():
        return codes[:1], np.zeros(len(codes), dtype=np.int64)
    first, inverse = np.unique(codes, return_inverse=True)
    return first, inverse


class _PairView:
    """A goal as one tile sees it. ``rows`` and ``columns`` of the tile fall into groups that share a limit."""

    def __init__(self, goal: ClassPairs, a: Codes, b: Codes) -> None:
        self.first, self.rows = _grouped(a)
        self.second, self.columns = _grouped(b)
        self.same = self.first[:, None] == self.second[None]
        self.best = goal.best[np.ix_(self.first, self.second)]
        self.per_pair, self.closest, self.above_zero = goal.per_pair, goal.closest, goal.above_zero
        self.top = list(goal.top)
        self.closer: list[Found] = []

    def limits(self) -> NDArray[np.float64]:
        overall = -self.top[0][0] if len(self.top) == self.closest else np.inf
        limits = np.maximum(self.best, overall) if self.per_pair else np.full(self.best.shape, overall)
        return np.where(self.same, -np.inf, limits)

    def add(self, i: Codes, j: Codes, row: Codes, column: Codes, distance: NDArray[np.float64]) -> None:
        useful = distance < self.limits()[row, column]
        if self.above_zero:
            useful &= distance > 0
        for p, q, g, h, d in zip(i[useful], j[useful], row[useful], column[useful], distance[useful], strict=True):
            pair = (float(d), *sorted((int(p), int(q))))
            self.closer.append(pair)  # type: ignore[arg-type]
            self.best[g, h] = min(self.best[g, h], d)
            _push(self.top, pair, self.closest)  # type: ignore[arg-type]


def _push(top: list[Found], pair: Found, size: int) -> None:
    """Keep the closest pairs in a heap whose root is the farthest of them."""
    distance, i, j = pair
    entry = (-distance, -i, -j)
    if len(top) < size:
        heapq.heappush(top, entry)
    elif entry > top[0]:
        heapq.heapreplace(top, entry)


class ClassPairs:
    """The smallest distance per two classes (or overall only), and the closest pairs of all."""

    def __init__(self, codes: Codes, *, per_pair: bool, closest: int, above_zero: bool) -> None:
        classes = int(codes.max()) + 1
        self.codes = codes
        self.per_pair, self.closest, self.above_zero = per_pair, closest, above_zero
        self.best = np.full((classes, classes), np.inf)
        self.pairs = np.full((classes, classes, 2), -1, dtype=np.int64)
        self.top: list[Found] = []

    def open(self, a: Codes, b: Codes, rows: Codes) -> _PairView:  # noqa: ARG002
        """A view for classes ``a`` of the points in ``rows`` against classes ``b``."""
        return _PairView(self, a, b)

    def merge(self, view: _PairView) -> None:
        """Take over what a tile found."""
        for pair in view.closer:
            self.record(pair)

    def farthest(self) -> float:
        """The largest limit of all: of the closest pairs, and of every two classes."""
        overall = -self.top[0][0] if len(self.top) == self.closest else np.inf
        apart = ~np.eye(len(self.best), dtype=bool)
        return max(overall, float(self.best[apart].max())) if self.per_pair else overall

    def record(self, pair: Found) -> None:
        """Count one pair of positions in, smaller position first."""
        distance, i, j = pair
        _push(self.top, pair, self.closest)
        g, h = self.codes[i], self.codes[j]
        if (distance, i, j) < (self.best[g, h], *(self.pairs[min(g, h), max(g, h)])):
            self.best[g, h] = self.best[h, g] = distance
            self.pairs[min(g, h), max(g, h)] = i, j

    def closest_pairs(self) -> list[Found]:
        """The closest pairs, closest first."""
        return sorted((-d, -i, -j) for d, i, j in self.top)


class _NearestView:
    def __init__(self, goal: Nearest, a: Codes, b: Codes, rows: Codes) -> None:
        self.points, self.rows = rows, np.arange(len(a))
        second, self.columns = _grouped(b)
        self.same = a[:, None] == second[None]
        self.best, self.other = goal.distance[rows], goal.other[rows]
        self.above_zero = goal.above_zero

    def limits(self) -> NDArray[np.float64]:
        return np.where(self.same, -np.inf, self.best[:, None])

    def add(  # the tile's own points are known by their rows
        self,
        i: Codes,  # noqa: ARG002
        j: Codes,
        row: Codes,
        column: Codes,  # noqa: ARG002
        distance: NDArray[np.float64],
    ) -> None:
        useful = distance < self.best[row]
        if self.above_zero:
            useful &= distance > 0
        order = np.lexsort((j[useful], distance[useful]))[::-1]  # so that the closest is written last
        self.best[row[useful][order]] = distance[useful][order]
        self.other[row[useful][order]] = j[useful][order]


class Nearest:
    """Each point's nearest point of another class."""

    def __init__(self, count: int, *, above_zero: bool) -> None:
        self.distance, self.other = np.full(count, np.inf), np.full(count, -1, dtype=np.int64)
        self.above_zero = above_zero

    def open(self, a: Codes, b: Codes, rows: Codes) -> _NearestView:
        """A view for one tile; ``rows`` are positions among all points."""
        return _NearestView(self, a, b, rows)

    def merge(self, view: _NearestView) -> None:
        """Take over what a tile found; another tile may have found something closer in between."""
        better = view.best < self.distance[view.points]
        rows = view.points[better]
        self.distance[rows], self.other[rows] = view.best[better], view.other[better]

    def farthest(self) -> float:
        """The largest distance so far; points that were not asked for count as infinitely far."""
        return float(self.distance.max())


Goal = ClassPairs | Nearest
View = _PairView | _NearestView
