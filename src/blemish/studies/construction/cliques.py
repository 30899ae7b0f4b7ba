"""Exact maximum cliques: the largest sets of vertices of a graph that are pairwise joined.

The search branches like Tomita's and San Segundo's algorithms: vertices are coloured greedily so that no colour holds a
joined pair, a clique takes at most one vertex of each colour, and a branch whose colours cannot complete the clique is
cut. In dense graphs a vertex is often shown to add nothing to some colours, because not all of them can give a vertex
with it: reasoning as for MaxSAT (Li and Quan 2010).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from blemish.core.errors import InputError
from blemish.studies.construction.graphs import Graph, members

DEFAULT_STEPS = 300_000
"""Search steps before giving up: about a minute, where ordinary matrices need seconds."""

_WALK = 20  # steps per vertex


class _OutOfStepsError(Exception):
    pass


class _Budget:
    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _OutOfStepsError


class _Colouring:
    """Sets of vertices without a joined pair, of each of which a clique takes one vertex at most."""

    def __init__(self, graph: Graph, candidates: int, count: int) -> None:
        self.graph = graph
        self.colours: list[int] = []
        self.of = [0] * len(graph)
        self.usable = 0
        self.left = candidates
        while self.left and len(self.colours) < count:
            self._add_colour()

    def _add_colour(self) -> None:
        apart, of, number = self.graph.apart, self.of, len(self.colours)
        free, colour = self.left, 0
        while free:
            low = free & -free
            v = low.bit_length() - 1
            colour |= low
            of[v] = number
            free &= apart[v]
        self.colours.append(colour)
        self.usable |= colour
        self.left &= ~colour

    def fits(self, v: int) -> bool:
        """Give a vertex one of the colours, moving the only neighbour it has there to another colour if need be."""
        joined, colours, usable = self.graph.joined, self.colours, self.usable
        near = joined[v]
        for i, colour in enumerate(colours):
            if not colour & usable:
                continue
            touching = colour & near
            if not touching:
                self._put(v, i)
                return True
            if touching & (touching - 1):
                continue
            w = touching.bit_length() - 1
            near_w = joined[w]
            for j, other in enumerate(colours):
                if j != i and not other & near_w and other & usable:
                    colours[i] ^= touching
                    self._put(w, j)
                    self._put(v, i)
                    return True
        return False

    def _put(self, v: int, i: int) -> None:
        self.colours[i] |= 1 << v
        self.usable |= 1 << v
        self.of[v] = i

    def blocks(self, v: int) -> bool:
        """Find colours that cannot all give a vertex to a clique with this one, and use them up.

        What follows if each of them did is derived: a colour with one vertex left gives that one, and its strangers
        leave the other colours. A colour left empty is a contradiction.
        """
        trail = [(v, -1)]
        empty = self._follow(trail)
        if empty is None:
            return False
        for i in members(self._reasons(trail, empty)):
            self.usable &= ~self.colours[i]
        return True

    def _follow(self, trail: list[tuple[int, int]]) -> int | None:
        """Take (vertex, colour) pairs for as long as more must follow; a colour left empty ends it."""
        apart, colours, of, alive = self.graph.apart, self.colours, self.of, self.usable
        for u, _ in trail:  # which grows on the way
            gone = alive & apart[u]
            alive ^= gone
            while gone:
                i = of[(gone & -gone).bit_length() - 1]
                part = colours[i] & alive
                if not part:
                    return i
                if not part & (part - 1):
                    trail.append((part.bit_length() - 1, i))
                gone &= ~colours[i]
        return None

    def _reasons(self, trail: list[tuple[int, int]], empty: int) -> int:
        """The colours that took part in leaving one empty."""
        joined = self.graph.joined
        involved, ask = 1 << empty, [(empty, len(trail), 0)]
        while ask:
            i, length, goal = ask.pop()
            rest = self.colours[i]
            for position in range(length):
                if rest == goal:
                    break
                u, source = trail[position]
                if source == i:
                    continue
                if rest & ~joined[u] and source >= 0 and not involved >> source & 1:
                    involved |= 1 << source
                    ask.append((source, position, 1 << u))
                rest &= joined[u]
        return involved


def _branches(graph: Graph, candidates: int, spare: int) -> list[int]:
    """The vertices one of which a clique of more than ``spare`` candidates must hold.

    The other candidates fall into ``spare`` colours, or are shown to add nothing to them.
    """
    colouring = _Colouring(graph, candidates, spare)
    misfits = [v for v in members(colouring.left) if not colouring.fits(v)]
    return [v for v in misfits if not colouring.blocks(v)]


@dataclass(frozen=True)
class LargestCliques:
    """The largest cliques, each sorted: all of them, or as many as were asked for.

    ``count`` is how many there are, or None where that was not found out because there are more than were listed.
    """

    size: int
    cliques: tuple[tuple[int, ...], ...]
    count: int | None


def largest_cliques(graph: Graph, *, limit: int, steps: int = DEFAULT_STEPS) -> LargestCliques:
    """All cliques of the largest size, found exactly, or as many as ``limit`` and ``steps`` allow.

    That none is larger is always proven, with as many steps again; an error where they do not suffice.

    >>> largest_cliques(Graph([0b0110, 0b0101, 0b1011, 0b0100]), limit=10)
    LargestCliques(size=3, cliques=((0, 1, 2),), count=1)
    """
    listing, proof = _Budget(steps), _Budget(steps)
    parts_found = []
    for part in graph.separate_parts():
        names = list(members(part))
        try:
            cliques, complete = _largest_of_part(graph.renumbered(names), limit, listing, proof)
        except _OutOfStepsError:
            raise InputError(
                f"the search for the largest subset was stopped after {steps:,} steps without a proof that none is "
                "larger than those found. Expected another threshold, fewer corruptions, or more steps"
            ) from None
        parts_found.append(([[names[v] for v in clique] for clique in cliques], complete))
    products = itertools.product(*(cliques for cliques, _ in parts_found))
    listed = [tuple(sorted(itertools.chain(*parts))) for parts in itertools.islice(products, limit)]
    complete = all(complete for _, complete in parts_found)
    count = math.prod(len(cliques) for cliques, _ in parts_found) if complete else None
    return LargestCliques(len(listed[0]), tuple(sorted(listed)), count)


def _largest_of_part(graph: Graph, limit: int, listing: _Budget, proof: _Budget) -> tuple[list[list[int]], bool]:
    """The largest cliques, and whether these are all: a guess of the size is listed, and corrected if too small."""
    order = graph.by_degree()
    inner = graph.renumbered(order)
    best = _good_clique(inner)
    while True:
        cliques, complete = _listed(inner, len(best), limit, listing)
        larger = next((clique for clique in cliques if len(clique) > len(best)), None)
        if larger is None and not complete:
            larger = next(_of_size(inner, len(best) + 1, proof), None)
        if larger is None:
            return [[order[v] for v in clique] for clique in cliques or [best]], complete
        best = larger


def _listed(graph: Graph, size: int, limit: int, budget: _Budget) -> tuple[list[list[int]], bool]:
    """Cliques of a size, and whether they are all; the list ends with a larger one if that is met."""
    cliques: list[list[int]] = []
    try:
        for clique in _of_size(graph, size, budget):
            if len(cliques) == limit:
                return cliques, False
            cliques.append(clique)
            if len(clique) > size:
                return cliques, False
    except _OutOfStepsError:
        return cliques, False
    return cliques, True


def _of_size(graph: Graph, size: int, budget: _Budget) -> Iterator[list[int]]:
    """All cliques of ``size`` vertices; those that could grow are grown, which tells that the size is too small."""

    def grow(clique: list[int], candidates: int) -> Iterator[list[int]]:
        budget.spend()
        if len(clique) >= size:
            while candidates:
                v = next(members(candidates))
                clique = [*clique, v]
                candidates &= graph.joined[v]
            yield clique
            return
        for v in reversed(_branches(graph, candidates, size - len(clique) - 1)):
            yield from grow([*clique, v], candidates & graph.joined[v])
            candidates &= ~(1 << v)

    return grow([], graph.all)


def _good_clique(graph: Graph) -> list[int]:
    """A large clique, without proof: a walk that adds what it can, else swaps one vertex, and shuns what it dropped."""
    draw = random.Random(0)
    count = len(graph)
    strangers = np.array([[bits >> u & 1 for u in range(count)] for bits in graph.apart], dtype=np.int32)
    best: list[int] = []
    inside = np.zeros(count, dtype=bool)
    missing = np.zeros(count, dtype=np.int32)  # how many members of the clique are strangers of each vertex
    shunned = np.zeros(count, dtype=np.int64)
    for step in range(_WALK * count):
        ready = np.flatnonzero(~inside & (missing == 0) & (shunned <= step))
        swaps = ready if len(ready) else np.flatnonzero(~inside & (missing == 1) & (shunned <= step))
        if not len(swaps):
            inside[:], missing[:] = False, 0
            swaps = np.arange(count)
        v = int(swaps[draw.randrange(len(swaps))])
        for u in np.flatnonzero(inside & (strangers[v] == 1)):
            inside[u] = False
            missing -= strangers[u]
            shunned[u] = step + 7 + draw.randrange(10)
        inside[v] = True
        missing += strangers[v]
        if inside.sum() > len(best):
            best = [int(u) for u in np.flatnonzero(inside)]
    return best
