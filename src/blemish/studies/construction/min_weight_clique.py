"""Among all cliques of one size, one whose pairs weigh least, found exactly where the number of steps allows.

Corruptions that could stand for each other make many largest cliques, which differ in little. In such graphs there are
mostly as many colours as a clique has members, and then `min_weight_choice` is much the better search.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from blemish.studies.construction.graphs import Graph, members
from blemish.studies.construction.min_weight_choice import MinWeightClique, min_weight_choice

Floats = NDArray[np.float64]

_CLOSE = 1e-12

_COLOURINGS = 300  # attempts at colouring with as few colours as possible
_VISITS = 4  # colours treated in place of a step of the plain search, which takes as long


def weight(clique: Sequence[int], weights: Floats) -> float:
    """The sum over all pairs.

    >>> weight([0, 1, 2], np.array([[0, 1, 2], [1, 0, 4], [2, 4, 0]]))
    7.0
    """
    return float(sum(weights[i, j] for i, j in itertools.combinations(sorted(clique), 2)))


def min_weight_clique(graph: Graph, weights: Floats, starts: Sequence[Sequence[int]], *, steps: int) -> MinWeightClique:
    """The clique with the least weight, of as many vertices as those in ``starts``.

    Branch and bound: over one vertex of each colour where there are as many colours (`min_weight_choice`), else as
    follows. Candidates are coloured, and a clique takes at most one vertex of each colour. A candidate costs at least
    its weights to those chosen plus half of its least weight to every other colour, since each pair counts from both
    its ends; with r vertices to go, the r colours with the cheapest candidates bound the rest. Weights must not be
    negative.
    """
    joined = np.array([[bits >> u & 1 == 1 for u in range(len(graph))] for bits in graph.joined])
    search = _Search(graph, np.where(joined, weights, np.inf), len(starts[0]), steps)
    for start in starts:
        search.improve(start)
    colours = few_colours(graph, search.size)
    if len(colours) == search.size:
        parts = [list(members(colour)) for colour in colours]
        return min_weight_choice(parts, search.weights, search.best, improve=search.improve, steps=_VISITS * steps)
    search.run()
    proven = search.left >= 0
    return MinWeightClique(sorted(search.best), search.least, search.least if proven else search.bound, proven)


def few_colours(graph: Graph, enough: int) -> list[int]:
    """Sets without a joined pair that hold all vertices: ``enough`` of them, or as few as were found.

    Colouring again, colour after colour in another order, never takes more colours (Culberson 1992).
    """
    draw = random.Random(0)
    colours = _coloured(graph, graph.by_degree())
    for attempt in range(_COLOURINGS):
        if len(colours) <= enough:
            break
        if attempt % 3:
            draw.shuffle(colours)
        else:
            colours.sort(key=int.bit_count, reverse=True)
        colours = _coloured(graph, [v for colour in colours for v in members(colour)])
    return colours


def _coloured(graph: Graph, order: Sequence[int]) -> list[int]:
    colours: list[int] = []
    for v in order:
        number = next((i for i, colour in enumerate(colours) if not colour & graph.joined[v]), None)
        if number is None:
            colours.append(1 << v)
        else:
            colours[number] |= 1 << v
    return colours


class _Search:
    def __init__(self, graph: Graph, weights: Floats, size: int, steps: int) -> None:
        self.graph, self.weights, self.size, self.left = graph, weights, size, steps
        self.apart = np.isinf(weights)
        self.finite = np.where(self.apart, 0, weights)
        self.best: list[int] = []
        self.least = self.bound = np.inf

    def improve(self, start: Sequence[int]) -> tuple[list[int], float]:
        """Swap single vertices for as long as that makes the clique lighter; the best clique known afterwards."""
        clique = list(start)
        while True:
            to_members, apart = self.finite[clique], self.apart[clique]
            sums = to_members.sum(axis=0)
            # What each vertex would weigh with the clique less one member, whose own share is taken off again.
            change = sums - to_members - sums[clique][:, None]
            change[apart.sum(axis=0) > apart] = np.inf
            change[:, clique] = np.inf
            member, v = np.unravel_index(int(np.argmin(change)), change.shape)
            if not change[member, v] < -_CLOSE:
                break
            clique[member] = int(v)
        total = weight(clique, self.weights)
        if total < self.least:
            self.best, self.least = clique, total
        return self.best, self.least

    def run(self) -> None:
        """Search everything that may be lighter than the best so far; ``left`` is negative if steps ran out."""
        everything = self.graph.all
        self.bound = min(self.least, self._bound(everything, np.zeros(len(self.graph)), self.size)[0])
        self._grow([], everything, np.zeros(len(self.graph)), 0.0)

    def _bound(self, candidates: int, costs: Floats, needed: int) -> tuple[float, int, int]:
        """What the rest weighs at least, the vertex to try first, and the candidates that are still possible."""
        colours = self.graph.coloured(candidates)
        if len(colours) < needed:
            return np.inf, -1, 0
        order = [v for colour in colours for v in colour]
        starts = np.cumsum([0, *(len(colour) for colour in colours[:-1])])
        least = np.minimum.reduceat(self.weights[np.ix_(order, order)], starts, axis=1)
        # A vertex has no neighbour in its own colour, so that this column is infinite and never among the least.
        nearest = np.partition(least, needed - 2, axis=1)[:, : needed - 1].sum(axis=1) if needed > 1 else np.zeros(1)
        estimates = costs[order] + nearest / 2
        cheapest = np.minimum.reduceat(estimates, starts)
        bound = float(np.partition(cheapest, needed - 1)[:needed].sum())
        possible = sum(1 << order[i] for i in np.flatnonzero(np.isfinite(estimates)))
        # The colour with the fewest possible vertices decides soonest; of those its cheapest vertex.
        sizes = np.add.reduceat(np.isfinite(estimates).astype(int), starts)
        colour = (
            int(np.argmin(np.where(sizes > 0, sizes, len(order))))
            if len(colours) == needed
            else int(np.argmin(cheapest))
        )
        inside = slice(starts[colour], starts[colour] + len(colours[colour]))
        return bound, order[inside][int(np.argmin(estimates[inside]))], possible

    def _grow(self, clique: list[int], candidates: int, costs: Floats, total: float) -> None:
        needed = self.size - len(clique)
        if needed == 0:
            if total < self.least:
                self.best, self.least = clique, total
            return
        while candidates:
            self.left -= 1
            if self.left < 0:
                return
            bound, v, candidates = self._bound(candidates, costs, needed)
            if total + bound >= self.least - _CLOSE:
                return
            self._grow(
                [*clique, v], candidates & self.graph.joined[v], costs + self.weights[v], total + float(costs[v])
            )
            candidates &= ~(1 << v)
