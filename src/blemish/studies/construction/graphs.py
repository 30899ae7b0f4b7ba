"""Graphs whose sets of vertices are the bits of Python integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def members(bits: int) -> Iterator[int]:
    """The vertices of a set, in increasing order.

    >>> list(members(0b10110))
    [1, 2, 4]
    """
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


class Graph:
    """An undirected graph as bit sets: ``joined[v]`` holds the neighbours of vertex v."""

    def __init__(self, joined: Sequence[int]) -> None:
        self.joined = tuple(joined)
        self.all = (1 << len(self.joined)) - 1
        self.apart = tuple(self.all & ~(bits | 1 << v) for v, bits in enumerate(self.joined))

    def __len__(self) -> int:
        return len(self.joined)

    def renumbered(self, order: Sequence[int]) -> Graph:
        """The graph of some or all vertices, with vertex ``order[i]`` called i."""
        number = {v: i for i, v in enumerate(order)}
        return Graph([sum(1 << number[u] for u in members(self.joined[v]) if u in number) for v in order])

    def by_degree(self) -> list[int]:
        """Vertices so that the last has the fewest neighbours, the one before the fewest among the others, …"""
        left, order = self.all, []
        while left:
            v = min(members(left), key=lambda u: ((self.joined[u] & left).bit_count(), u))
            order.append(v)
            left ^= 1 << v
        return order[::-1]

    def coloured(self, vertices: int) -> list[list[int]]:
        """These vertices in sets without a joined pair, each made greedily.

        >>> Graph([0b010, 0b101, 0b010]).coloured(0b111)
        [[0, 2], [1]]
        """
        colours = []
        while vertices:
            free, colour = vertices, []
            while free:
                v = (free & -free).bit_length() - 1
                colour.append(v)
                free &= self.apart[v]
                vertices ^= 1 << v
            colours.append(colour)
        return colours

    def separate_parts(self) -> list[int]:
        """Sets of vertices that are fully joined to each other, so that their cliques can be sought one by one."""
        parts, left = [], self.all
        while left:
            part = frontier = left & -left
            while frontier:
                reached = 0
                for v in members(frontier):
                    reached |= self.apart[v]
                frontier = reached & ~part
                part |= frontier
            parts.append(part)
            left &= ~part
        return parts
