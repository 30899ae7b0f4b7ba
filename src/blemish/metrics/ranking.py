"""Ranks that say no more than the numbers do: from tests of all pairs of models to ranges of ranks and groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate, normal_quantile
from blemish.metrics.formulas import Array


@dataclass(frozen=True)
class Rank:
    """A model's place: no better than ``first``, no worse than ``last``, and the number of its group.

    ``first`` is one more than the models that are told to be better, ``last`` the number of models less those that are
    told to be worse. Between two groups, every model of the upper one is told to be better than every one of the lower;
    within a group that does not hold.
    """

    first: int
    last: int
    group: int

    def __str__(self) -> str:
        """As it is printed: ``2``, or ``2–4`` where it could be any of them."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


def holm(p_values: ArrayLike) -> Array:
    """p-values that hold for all tests together (Holm 1979): the smallest times their number, the next times one less …

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise InputError(f"p-values of shape {values.shape}; expected a row of numbers from 0 to 1")
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)) if len(values) else values
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1.0, steps)
    return adjusted


def ranks(values: Sequence[float], p_values: ArrayLike, *, level: float = 0.95) -> list[Rank]:
    """The ranks of models whose lower values are better, from p-values of all pairs: entry (i, j), i < j, counts.

    Pairs are told apart where Holm's corrected p-value is at most 1 − ``level``, so that with that probability none of
    the claims is false.
    """
    pairs = list(combinations(range(len(values)), 2))
    table = np.asarray(p_values, dtype=np.float64).reshape(len(values), len(values))
    corrected = holm([table[pair] for pair in pairs])
    better = np.zeros((len(values), len(values)), dtype=bool)
    for (i, j), p_value in zip(pairs, corrected, strict=True):
        if p_value <= 1 - level + 1e-12:
            better[i, j], better[j, i] = values[i] < values[j], values[j] < values[i]
    return _ranks_of(values, better)


def _ranks_of(values: Sequence[float], better: NDArray[np.bool_]) -> list[Rank]:
    count = len(values)
    order = sorted(range(count), key=lambda i: (values[i], i))
    groups, group = [0] * count, 1
    for place, i in enumerate(order):
        upper, lower = order[:place], order[place:]
        if place and better[np.ix_(upper, lower)].all():
            group += 1
        groups[i] = group
    return [Rank(1 + int(better[:, i].sum()), count - int(better[i].sum()), groups[i]) for i in range(count)]


def p_values_of_intervals(estimates: Sequence[Estimate], *, level: float = 0.95) -> Array:
    """p-values of all pairs from nothing but intervals, as if models had answered different images.

    Models that answer the same images agree on most of them, which makes differences surer than this: what is told
    apart so is so, and more might be. An interval of no width is none, and such a model is told apart from nobody.
    """
    middle = np.array([estimate.value for estimate in estimates])
    spread = np.array([estimate.width for estimate in estimates]) / (2 * normal_quantile(level))
    table = np.ones((len(middle), len(middle)))
    for i, j in combinations(range(len(middle)), 2):
        deviation = math.hypot(spread[i], spread[j])
        if math.isfinite(deviation) and spread[i] > 0 and spread[j] > 0:
            table[i, j] = table[j, i] = 2 * NormalDist().cdf(-abs(middle[i] - middle[j]) / deviation)
    return table


def pareto(points: Sequence[Sequence[float | None]]) -> list[bool]:
    """Which points no other beats: as low in everything, and lower in something.

    A point with a number missing is beaten by none and beats none.

    >>> pareto([[1, 5], [2, 2], [3, 3], [2, None]])
    [True, True, False, False]
    """
    whole = [tuple(p) if None not in p else None for p in points]

    def beats(one: tuple[float | None, ...], other: tuple[float | None, ...]) -> bool:
        return one != other and all(a <= b for a, b in zip(one, other, strict=True))  # type: ignore[operator]

    return [
        point is not None and not any(other is not None and beats(other, point) for other in whole) for point in whole
    ]
