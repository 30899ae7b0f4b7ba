"""Ranks that say what is known: models that paired tests cannot tell apart share a group and a range of ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.core.errors import InputError
from blemish.core.statistics import check_level


@dataclass(frozen=True)
class Place:
    """Where a model stands: ``index`` is its place in what was given, ``low`` … ``high`` are the ranks it may have.

    ``low`` is one more than the number of models told to be better, ``high`` the number of all models less those told
    to be worse. Two models that share one of the ``groups``, counted from 0, cannot be told apart.
    """

    index: int
    value: float
    low: int
    high: int
    groups: tuple[int, ...]

    @property
    def may_be_best(self) -> bool:
        """Whether no model is told to be better."""
        return self.low == 1

    @property
    def rank(self) -> str:
        """The range of ranks as text.

        >>> Place(0, 40.0, 1, 3, (0,)).rank, Place(0, 40.0, 2, 2, (1,)).rank
        ('1–3', '2')
        """
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"

    @property
    def letters(self) -> str:
        """The groups as letters; after z comes aa.

        >>> Place(0, 40.0, 1, 3, (0, 1, 26)).letters
        'a b aa'
        """
        return " ".join(_letters(group) for group in self.groups)


def _letters(number: int) -> str:
    text = ""
    while number >= 0:
        number, rest = divmod(number, 26)
        text, number = chr(ord("a") + rest) + text, number - 1
    return text


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """p-values of several tests, corrected so that any false alarm among them all has the level's probability.

    Holm (1979): the k-th smallest of m is multiplied by m − k + 1, and none falls below the one before it.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or not np.all((values >= 0) & (values <= 1)):
        raise InputError(f"p-values {values.tolist()}; expected a list of numbers between 0 and 1")
    order = np.argsort(values, kind="stable")
    factors = np.arange(len(values), 0, -1)
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(1, np.maximum.accumulate(values[order] * factors))
    return corrected


def rank_groups(
    values: Sequence[float], p_values: ArrayLike, *, higher_is_better: bool = False, level: float = 0.95
) -> list[Place]:
    """The models in order, the best first, by their values and the p-values of all pairs, a symmetric matrix.

    The p-values are corrected with `holm` over all pairs; a pair is told apart where the corrected one is at most
    1 − ``level``. Groups are the largest sets of models in which no pair is told apart, numbered from the best on.

    >>> places = rank_groups([40.0, 50.0, 41.0], [[1, 0.001, 0.6], [0.001, 1, 0.02], [0.6, 0.02, 1]])
    >>> [(place.index, place.rank, place.letters) for place in places]
    [(0, '1–2', 'a'), (2, '1–2', 'a'), (1, '3', 'b')]
    """
    places, apart = _placed(values, p_values, higher_is_better=higher_is_better, level=level)
    groups = sorted(sorted(group) for group in _largest(~apart & ~np.eye(len(apart), dtype=bool)))
    return [
        replace(each, groups=tuple(number for number, group in enumerate(groups) if index in group))
        for index, each in enumerate(places)
    ]


def rank_ranges(
    values: Sequence[float], p_values: ArrayLike, *, higher_is_better: bool = False, level: float = 0.95
) -> list[Place]:
    """The same without groups, of which there may be too many to name where models are hundreds."""
    return _placed(values, p_values, higher_is_better=higher_is_better, level=level)[0]


def _placed(
    values: Sequence[float], p_values: ArrayLike, *, higher_is_better: bool, level: float
) -> tuple[list[Place], NDArray[np.bool_]]:
    """The models in order, and which of them, by place, are told apart."""
    check_level(level)
    numbers, matrix = np.asarray(values, dtype=np.float64), np.asarray(p_values, dtype=np.float64)
    count = len(numbers)
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise InputError(f"values {list(values)}; expected finite numbers")
    if matrix.shape != (count, count) or not np.array_equal(matrix, matrix.T):
        raise InputError(f"p-values of shape {matrix.shape} for {count} models; expected a symmetric matrix")
    order = np.argsort(-numbers if higher_is_better else numbers, kind="stable")
    rows, columns = np.triu_indices(count, 1)
    apart = np.zeros((count, count), dtype=bool)
    ranked = matrix[np.ix_(order, order)]
    apart[rows, columns] = holm(ranked[rows, columns]) <= 1 - level + 1e-12
    apart |= apart.T
    places = [
        Place(
            index=int(index),
            value=float(numbers[index]),
            low=1 + int(apart[position, :position].sum()),
            high=count - int(apart[position, position + 1 :].sum()),
            groups=(),
        )
        for position, index in enumerate(order)
    ]
    return places, apart


def _largest(alike: NDArray[np.bool_]) -> Iterator[set[int]]:
    """The maximal cliques of a graph (Bron and Kerbosch 1973, with a pivot)."""
    neighbours = [set(np.flatnonzero(row).tolist()) for row in alike]

    def grow(chosen: set[int], open_ones: set[int], done: set[int]) -> Iterator[set[int]]:
        if not open_ones and not done:
            yield chosen
            return
        pivot = max(open_ones | done, key=lambda node: len(neighbours[node] & open_ones))
        for node in sorted(open_ones - neighbours[pivot]):
            yield from grow(chosen | {node}, open_ones & neighbours[node], done & neighbours[node])
            open_ones, done = open_ones - {node}, done | {node}

    if len(alike):
        yield from grow(set(), set(range(len(alike))), set())
