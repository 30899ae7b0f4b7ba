"""One vertex of each colour such that the pairs weigh least: branch and bound on a dual.

Where a graph has as many colours as its largest cliques have members, such a clique takes exactly one vertex of each
colour. Weights can then be moved between pairs of colours and single vertices without any choice weighing more or less
than before, and whatever way they are moved, the least values of all colours and of all pairs of colours add up to a
bound. Moving them from colour to colour, there and back, makes the bound rise (sequential tree-reweighted message
passing: Kolmogorov 2006). Vertices that cannot be part of a choice lighter than the best one known are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Sums are compared with this slack, which is more than their rounding.
_SLACK = 1e-10

# Rounds of moving weights, and the share of the gap that a round has to close to be followed by another.
_FIRST_ROUNDS, _FIRST_GAIN = 300, 0.001
_ROUNDS, _GAIN = 2, 0.05


@dataclass(frozen=True)
class MinWeightClique:
    """Vertices, their weight, and a weight that none falls below; equal, but for rounding, if proven."""

    clique: list[int]
    weight: float
    bound: float
    proven: bool


def min_weight_choice(
    colours: Sequence[Sequence[int]],
    weights: Floats,
    best: Sequence[int],
    *,
    improve: Callable[[list[int]], tuple[list[int], float]],
    steps: int,
) -> MinWeightClique:
    """The choice of one vertex per colour with the least weight; pairs of infinite weight never stand together.

    ``best`` is a choice to begin with, and ``improve`` makes one lighter where it can. A step treats one colour once.
    """
    search = _Search(weights, improve, steps)
    search.offer(list(best))
    names = np.array([v for colour in colours for v in colour])
    number = np.repeat(np.arange(len(colours)), [len(colour) for colour in colours])
    # No choice with a pair this heavy has the least weight, and messages have to stay finite.
    heavy = 2 * search.least + 1
    pair = np.minimum(weights[np.ix_(names, names)], heavy)
    start = _State(pair, np.zeros((len(names), len(colours))), np.zeros(len(names)), number, names, (), 0.0)
    search.explore(start, 0.0, first=True)
    proven = search.open == np.inf
    bound = search.least if proven else min(search.least, search.open)
    return MinWeightClique(sorted(search.best), search.least, bound, proven)


@dataclass
class _State:
    """What is left to choose from, sorted by colour.

    A choice weighs ``settled``, the ``own`` weight of each vertex, and for each pair of vertices x and y its ``pair``
    weight less what was ``moved`` to x from the colour of y, and to y from that of x.
    """

    pair: Floats
    moved: Floats
    own: Floats
    colour: NDArray[np.int64]
    names: NDArray[np.int64]
    chosen: tuple[int, ...]
    settled: float

    @property
    def starts(self) -> NDArray[np.int64]:
        return np.searchsorted(self.colour, np.arange(self.moved.shape[1]))

    def only(self, keep: Bools) -> _State:
        """Some of the vertices, as a copy."""
        return _State(
            self.pair[np.ix_(keep, keep)],
            self.moved[keep],
            self.own[keep],
            self.colour[keep],
            self.names[keep],
            self.chosen,
            self.settled,
        )

    def settle(self) -> None:
        """Choose what is the only vertex of its colour: its pairs become weights of the others."""
        while True:
            sizes = np.bincount(self.colour, minlength=self.moved.shape[1])
            single = np.flatnonzero(sizes == 1)
            if not len(single):
                return
            i = int(single[0])
            x = int(np.searchsorted(self.colour, i))
            self.own += self.pair[x] - self.moved[x][self.colour] - np.where(self.colour == i, 0, self.moved[:, i])
            # The diagonal holds no pair.
            self.settled += float(self.own[x] - self.pair[x, x] + self.moved[x, i])
            self.chosen = (*self.chosen, int(self.names[x]))
            self.pair = np.delete(np.delete(self.pair, x, 0), x, 1)
            self.moved = np.delete(np.delete(self.moved, x, 0), i, 1)
            self.own, self.names = np.delete(self.own, x), np.delete(self.names, x)
            self.colour = np.delete(self.colour, x)
            self.colour = self.colour - (self.colour > i)

    def round(self) -> None:
        """Move weights from colour to colour, forwards and back."""
        starts, count = self.starts, self.moved.shape[1]
        ends = np.append(starts[1:], len(self.colour))
        for i in range(count):
            self._move(i, slice(starts[i], ends[i]), starts, slice(i + 1, count))
        for i in range(count - 1, -1, -1):
            self._move(i, slice(starts[i], ends[i]), starts, slice(0, i))

    def _move(self, i: int, rows: slice, starts: NDArray[np.int64], to: slice) -> None:
        """Take to the vertices of a colour what all pairs with them have in common, and share it out again."""
        moved, own = self.moved[rows], self.own[rows]
        left = self.pair[rows] - moved[:, self.colour]
        left -= self.moved[:, i]
        least = np.minimum.reduceat(left, starts, axis=1)
        least[:, i] = 0
        moved += least
        own += least.sum(axis=1)
        share = own / max(i, len(starts) - 1 - i, 1)
        moved[:, to] -= share[:, None]
        own -= share * (to.stop - to.start)

    def bounds(self) -> tuple[float, Floats]:
        """What every choice weighs at least, and what those with a given vertex do."""
        starts, count = self.starts, len(self.colour)
        moved = self.moved[:, self.colour]
        least = np.minimum.reduceat(self.pair - moved - moved.T, starts, axis=1)
        least[np.arange(count), self.colour] = 0
        pairs = np.minimum.reduceat(least, starts, axis=0)
        own = np.minimum.reduceat(self.own, starts)
        total = self.settled + float(own.sum() + np.triu(pairs, 1).sum())
        return total, total + self.own - own[self.colour] + (least - pairs[self.colour]).sum(axis=1)


class _Search:
    def __init__(self, weights: Floats, improve: Callable[[list[int]], tuple[list[int], float]], steps: int) -> None:
        self.weights, self.improve, self.left = weights, improve, steps
        self.best: list[int] = []
        self.least = self.open = np.inf

    def offer(self, choice: list[int]) -> None:
        """Keep a choice if none so far weighs less."""
        inside = self.weights[np.ix_(choice, choice)]
        if float(inside[np.triu_indices(len(choice), 1)].sum()) < self.least - _SLACK:
            self.best, self.least = self.improve(choice)

    def explore(self, state: _State, floor: float, *, first: bool = False) -> None:
        """Search all choices of a state, none of which is lighter than ``floor``; what is left out stays ``open``."""
        if self.left <= 0:
            self.open = min(self.open, floor)
            return
        tightened = self._tightened(state, *((_FIRST_ROUNDS, _FIRST_GAIN) if first else (_ROUNDS, _GAIN)))
        if tightened is None:
            return
        state, bound, with_vertex = tightened
        self.offer([*state.chosen, *(int(v) for v in state.names[_least_of_each(state, with_vertex)])])
        if not len(state.colour):
            return
        floor = max(floor, bound)
        colour = _most_telling(state, with_vertex)
        rows = np.flatnonzero(state.colour == colour)
        for x in rows[np.argsort(with_vertex[rows], kind="stable")]:
            least = max(floor, float(with_vertex[x]))
            if least >= self.least - _SLACK:
                break
            keep = state.colour != colour
            keep[x] = True
            self.explore(state.only(keep), least)

    def _tightened(self, state: _State, rounds: int, gain: float) -> tuple[_State, float, Floats] | None:
        """The state with a better bound, for as long as a round closes so much of the gap; none where nothing is left.

        With it the bound, and that of each vertex.
        """
        reduced = self._reduced(state)
        while reduced is not None and rounds and self.left > 0 and len(reduced[0].colour):
            state, before, _ = reduced
            rounds -= 1
            self.left -= 2 * state.moved.shape[1]
            state.round()
            reduced = self._reduced(state)
            if reduced is not None and reduced[1] - before < gain * (self.least - reduced[1]):
                break
        return reduced

    def _reduced(self, state: _State) -> tuple[_State, float, Floats] | None:
        """The state without vertices that no lighter choice holds; none where there is no lighter choice."""
        while True:
            state.settle()
            if not len(state.colour):
                return (state, state.settled, np.empty(0)) if state.settled < self.least - _SLACK else None
            bound, with_vertex = state.bounds()
            matter = with_vertex < self.least - _SLACK
            if matter.all() and bound < self.least - _SLACK:
                return state, bound, with_vertex
            sizes = np.bincount(state.colour[matter], minlength=state.moved.shape[1])
            if sizes.min() == 0 or bound >= self.least - _SLACK:
                return None
            state = state.only(matter)
            if sizes.min() > 1:
                return state, bound, with_vertex[matter]


def _least_of_each(state: _State, values: Floats) -> NDArray[np.int64]:
    """For each colour the vertex with the least value."""
    order = np.lexsort((values, state.colour))
    return order[state.starts]


def _most_telling(state: _State, values: Floats) -> int:
    """The colour with the fewest vertices; among several, that whose vertices are cut soonest."""
    starts = state.starts
    sizes = np.diff(np.append(starts, len(state.colour)))
    above = np.add.reduceat(values, starts) / sizes - np.minimum.reduceat(values, starts)
    return int(np.lexsort((-above, sizes))[0])
