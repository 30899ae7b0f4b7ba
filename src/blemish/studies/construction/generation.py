"""Benchmarks with n categories and k corruptions of each (Syn2Nat paper, Algorithm 1, and its selection)."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blemish.core.errors import InputError
from blemish.core.rng import check_seed
from blemish.studies.construction.categories import Categories
from blemish.studies.construction.cliques import DEFAULT_STEPS
from blemish.studies.construction.graphs import Graph
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.min_weight_clique import min_weight_clique

DRAWS = {
    "uniform": "every possible benchmark equally likely",
    "categories-first": "n categories first, then k corruptions of each, as the paper draws",
}
"""How benchmarks are drawn. Where all categories are represented, both give every benchmark the same chance."""


def count_benchmarks(categories: Categories, *, n: int, k: int) -> int:
    """How many benchmarks have k corruptions of each of n categories.

    That is the sum over all n categories of the products of "size choose k".

    >>> count_benchmarks(Categories({"a": ("1", "2", "3"), "b": ("4", "5")}), n=2, k=2)
    3
    """
    _check(categories, n, k)
    return _ways(categories, n, k)[0][n]


def _check(categories: Categories, n: int, k: int) -> None:
    if not 1 <= n <= len(categories.members):
        raise InputError(f"n = {n} categories; expected 1 to {len(categories.members)}, as many as there are")
    if k < 1:
        raise InputError(f"k = {k} corruptions per category; expected at least 1")


def _ways(categories: Categories, n: int, k: int) -> list[list[int]]:
    """``ways[i][m]``: how many benchmarks take m categories out of the i-th and all later ones."""
    sizes = [len(names) for names in categories.members.values()]
    ways = [[1] + [0] * n]
    for size in reversed(sizes):
        later, choices = ways[0], math.comb(size, k)
        ways.insert(0, [1] + [later[m] + choices * later[m - 1] for m in range(1, n + 1)])
    return ways


def generate_benchmarks(
    categories: Categories, *, n: int, k: int, count: int, seed: int = 0, draw: str = "uniform"
) -> list[tuple[str, ...]]:
    """``count`` different benchmarks with k corruptions of each of n categories.

    With the draw ``uniform`` every possible one is equally likely: the possibilities are numbered, and numbers are
    drawn without replacement. ``categories-first`` is the paper's Algorithm 1, repeated until so many differ: it draws
    all sets of n categories equally often, so that benchmarks of small categories are likelier. Categories of fewer
    than k corruptions are never drawn. Corruptions stand in the order of their categories. An error says how many
    possibilities there are where they are fewer than asked for.
    """
    if draw not in DRAWS:
        raise InputError(f"unknown draw {draw!r}; expected {' or '.join(DRAWS)}")
    total = count_benchmarks(categories, n=n, k=k)
    if count < 1:
        raise InputError(f"{count} benchmarks; expected at least 1")
    if total < count:
        sizes = ", ".join(f"{name} {len(names)}" for name, names in categories.members.items())
        raise InputError(
            f"there are only {total:,} benchmarks with n = {n}, k = {k}, and {count:,} are asked for "
            f"(categories: {sizes})"
        )
    chance = random.Random(check_seed(seed))
    if draw == "categories-first":
        return _categories_first(categories, n, k, count, chance)
    ways = _ways(categories, n, k)
    return [_numbered(categories, ways, number, n, k) for number in _distinct(total, count, chance)]


def _categories_first(categories: Categories, n: int, k: int, count: int, draw: random.Random) -> list[tuple[str, ...]]:
    """Algorithm 1 again and again until there are so many different benchmarks."""
    able = [names for names in categories.members.values() if len(names) >= k]
    distinct: dict[tuple[str, ...], None] = {}
    while len(distinct) < count:
        chosen = sorted(draw.sample(range(len(able)), n))
        members = [able[number][i] for number in chosen for i in sorted(draw.sample(range(len(able[number])), k))]
        distinct[tuple(members)] = None
    return list(distinct)


def _distinct(total: int, count: int, draw: random.Random) -> list[int]:
    """Different numbers below ``total``, every set and order of them equally likely (Floyd's method, then shuffled)."""
    chosen: dict[int, None] = {}
    for last in range(total - count, total):
        number = draw.randrange(last + 1)
        chosen[last if number in chosen else number] = None
    numbers = list(chosen)
    draw.shuffle(numbers)
    return numbers


def _numbered(categories: Categories, ways: list[list[int]], number: int, n: int, k: int) -> tuple[str, ...]:
    """The benchmark with a number, counting through the categories and through the choices within each."""
    members: list[str] = []
    for index, names in enumerate(categories.members.values()):
        skipping = ways[index + 1][n]
        if n == 0 or number < skipping:
            continue
        number -= skipping
        n -= 1
        choice, number = divmod(number, ways[index + 1][n])
        members += [names[i] for i in _combination(len(names), k, choice)]
    return tuple(members)


def _combination(size: int, k: int, number: int) -> list[int]:
    """The combination with a number, in lexicographic order.

    >>> [_combination(4, 2, number) for number in range(6)]
    [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    """
    chosen: list[int] = []
    for i in range(size):
        if len(chosen) == k:
            break
        starting_here = math.comb(size - i - 1, k - len(chosen) - 1)
        if number < starting_here:
            chosen.append(i)
        else:
            number -= starting_here
    return chosen


@dataclass(frozen=True)
class LeastOverlapping:
    """The benchmark whose same-category members overlap least, and their mean score (None where k is 1)."""

    members: tuple[str, ...]
    k: int
    mean: float | None
    proven: bool


def select_least_overlapping(
    matrix: OverlapMatrix, categories: Categories, *, k: int | None = None, steps: int = DEFAULT_STEPS
) -> LeastOverlapping:
    """The Syn2Nat selection: all categories, k corruptions of each with the lowest mean same-category overlap.

    ``k`` is by default the size of the smallest category, the largest possible. Every category is searched on its own.
    """
    sizes = [len(names) for names in categories.members.values()]
    k = min(sizes) if k is None else k
    _check(categories, len(sizes), k)
    if min(sizes) < k:
        name = next(name for name, names in categories.members.items() if len(names) < k)
        raise InputError(f"k = {k}, but {name} has {min(sizes)} corruptions; expected at most {min(sizes)}")
    matrix = matrix.only(categories.corruptions)
    members: list[str] = []
    total, proven = 0.0, True
    for names in categories.members.values():
        chosen, weight, sure = _least_of(matrix.only(names), k, steps)
        members += chosen
        total += weight
        proven &= sure
    pairs = len(sizes) * math.comb(k, 2)
    return LeastOverlapping(tuple(members), k, total / pairs if pairs else None, proven)


def _least_of(matrix: OverlapMatrix, k: int, steps: int) -> tuple[Sequence[str], float, bool]:
    """The k corruptions with the lowest sum of scores; undefined pairs never stand together."""
    names = matrix.names
    if k == 1:
        return names[:1], 0.0, True
    scores = matrix.scores
    if math.comb(len(names), k) <= 200_000:
        subsets = np.array(list(itertools.combinations(range(len(names)), k)))
        sums = sum(scores[subsets[:, i], subsets[:, j]] for i, j in itertools.combinations(range(k), 2))
        sums = np.where(np.isnan(sums), np.inf, sums)
        best = int(np.argmin(sums))
        if np.isinf(sums[best]):
            raise InputError(f"no {k} of {', '.join(names)} have defined scores throughout; expected some")
        return [names[i] for i in subsets[best]], float(sums[best]), True
    if matrix.undefined:
        raise InputError(f"undefined scores among {len(names)} corruptions; expected none in a category this large")
    everything = (1 << len(names)) - 1
    graph = Graph([everything & ~(1 << v) for v in range(len(names))])
    result = min_weight_clique(graph, scores, [range(k)], steps=steps)
    return [names[i] for i in result.clique], result.weight, result.proven
