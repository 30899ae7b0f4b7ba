"""Sets of pairwise joined vertices that cover the most, then the smallest of them: exact branch and bound.

Every vertex covers some others. Some corruption that is not covered yet is taken, the one that the fewest vertices
could cover: one of these joins the set, or it stays uncovered. Candidates are coloured so that no colour holds a joined
pair; the set takes at most one vertex of each colour, so that what each colour's best vertex would newly cover adds up
to a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blemish.studies.construction.graphs import Graph, members


@dataclass(frozen=True)
class Covering:
    """A set of joined vertices as bits, and how many vertices it covers.

    No such set covers more than ``most``. If ``proven``, ``most`` is what this one covers, and no smaller set does.
    """

    chosen: int
    covered: int
    most: int
    proven: bool


def most_covering(graph: Graph, covers: Sequence[int], candidates: int, *, steps: int) -> Covering:
    """A set of candidates, joined to each other, that covers the most vertices, and the smallest such set.

    ``covers[v]`` are the vertices that v covers, as bits; the candidates cover at least themselves.

    >>> path = Graph([0b100, 0b000, 0b001])  # only 0 and 2 can stand together; 1 alone covers all three
    >>> most_covering(path, [0b011, 0b111, 0b110], 0b111, steps=100)
    Covering(chosen=2, covered=3, most=3, proven=True)
    """
    search = _Search(graph, covers, steps)
    search.offer(_greedy(graph, covers, candidates))
    search.grow(0, 0, candidates)
    proven = search.left >= 0
    most = search.covered if proven else max(search.covered, search.open)
    return Covering(search.chosen[0], search.covered, most, proven)


def all_covering(
    graph: Graph, covers: Sequence[int], candidates: int, like: Covering, *, limit: int, steps: int
) -> tuple[list[int], bool]:
    """Sets that cover as many vertices with as few members as a proven one, and whether these are all."""
    search = _Search(graph, covers, steps, limit=limit)
    search.covered, search.size = like.covered, like.chosen.bit_count()
    search.grow(0, 0, candidates)
    complete = search.left >= 0 and not search.full
    return sorted(search.chosen) or [like.chosen], complete


def _greedy(graph: Graph, covers: Sequence[int], candidates: int) -> int:
    chosen = covered = 0
    while candidates:
        v = max(members(candidates), key=lambda u: (covers[u] & ~covered).bit_count())
        if not covers[v] & ~covered:
            break
        chosen |= 1 << v
        covered |= covers[v]
        candidates &= graph.joined[v]
    return chosen


class _Search:
    """The best sets so far; with a ``limit``, all that are as good as a known one."""

    def __init__(self, graph: Graph, covers: Sequence[int], steps: int, limit: int | None = None) -> None:
        self.graph, self.covers, self.left, self.limit = graph, covers, steps, limit
        self.chosen: list[int] = []
        self.covered, self.size = -1, 0
        self.open = -1  # the highest bound of what was not searched
        self.full = False

    def offer(self, chosen: int) -> None:
        """Keep a set if it covers more than the best, or as many with fewer members; or list it beside the others."""
        covered = 0
        for v in members(chosen):
            covered |= self.covers[v]
        rank = (covered.bit_count(), -chosen.bit_count())
        if rank == (self.covered, -self.size) and self.limit is not None:
            self.full = len(self.chosen) >= self.limit
            if not self.full:
                self.chosen.append(chosen)
        elif rank > (self.covered, -self.size):
            self.chosen, (self.covered, self.size) = [chosen], (rank[0], -rank[1])

    def grow(self, chosen: int, covered: int, candidates: int) -> None:
        """Search all sets that hold ``chosen`` and others of the candidates, which are joined to all of it."""
        gains = {v: gain for v in members(candidates) if (gain := (self.covers[v] & ~covered).bit_count())}
        if not gains:
            self.offer(chosen)
            return
        if self.full or self._hopeless(chosen, covered, gains):
            return
        self.left -= 1
        if self.left < 0:
            self.open = max(self.open, self._bound(covered, gains)[0])
            return
        coverers = self._fewest(covered, gains)
        candidates = sum(1 << v for v in gains)
        for v in coverers:
            self.grow(chosen | 1 << v, covered | self.covers[v], candidates & self.graph.joined[v])
            candidates &= ~(1 << v)
        self.grow(chosen, covered, candidates)

    def _bound(self, covered: int, gains: dict[int, int]) -> tuple[int, list[int]]:
        """What can be covered at most, and what the colours add at most, largest first."""
        parts = self.graph.coloured(sum(1 << v for v in gains))
        best = sorted((max(gains[v] for v in part) for part in parts), reverse=True)
        reachable = 0
        for v in gains:
            reachable |= self.covers[v]
        return covered.bit_count() + min(sum(best), (reachable & ~covered).bit_count()), best

    def _hopeless(self, chosen: int, covered: int, gains: dict[int, int]) -> bool:
        """Whether nothing better, or as good where all are listed, can come of it."""
        bound, best = self._bound(covered, gains)
        if bound != self.covered:
            return bound < self.covered
        needed, count = self.covered - covered.bit_count(), 0
        while needed > 0:
            needed -= best[count]
            count += 1
        size = chosen.bit_count() + count
        return size > self.size if self.limit is not None else size >= self.size

    def _fewest(self, covered: int, gains: dict[int, int]) -> list[int]:
        """The vertices that could cover the vertex which the fewest could, the one that adds most first."""
        coverers: dict[int, list[int]] = {}
        for v in gains:
            for u in members(self.covers[v] & ~covered):
                coverers.setdefault(u, []).append(v)
        least = min(coverers.values(), key=lambda group: (len(group), -max(gains[v] for v in group), group))
        return sorted(least, key=lambda v: (-gains[v], v))
