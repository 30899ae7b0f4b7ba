"""Unbalancing benchmarks step by step, to see what balance is worth (Syn2Nat paper, section 5.2)."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from blemish.core.errors import InputError
from blemish.core.rng import check_seed
from blemish.studies.construction.categories import Categories


def _counts(benchmark: Sequence[str], categories: Categories) -> Counter[str]:
    if len(set(benchmark)) != len(benchmark) or not benchmark:
        raise InputError("a benchmark that is empty or holds a corruption twice; expected different corruptions")
    return Counter(categories.labels(benchmark))


def representation_std(benchmark: Sequence[str], categories: Categories) -> float:
    """Population standard deviation of the numbers of representatives of the represented categories.

    >>> kinds = Categories({"noises": ("shot", "iso", "gauss"), "colours": ("hue",)})
    >>> representation_std(["shot", "iso", "gauss", "hue"], kinds)
    1.0
    """
    counts = _counts(benchmark, categories).values()
    mean = len(benchmark) / len(counts)
    return math.sqrt(sum((count - mean) ** 2 for count in counts) / len(counts))


def possible_substitutions(benchmark: Sequence[str], categories: Categories) -> list[tuple[str, str]]:
    """All pairs of a corruption to remove and one to add that meet the three conditions.

    The represented categories stay, the standard deviation of the numbers of representatives grows, and the added
    corruption is not there already. Taking from a category with a representatives and adding to one with b changes the
    sum of squares by 2 (b − a) + 2, so the deviation grows exactly if b ≥ a.
    """
    counts = _counts(benchmark, categories)
    return [
        (removed, added)
        for removed in benchmark
        for name, members in categories.members.items()
        if name != categories.of(removed) and counts[name] >= counts[categories.of(removed)] >= 2
        for added in members
        if added not in benchmark
    ]


@dataclass(frozen=True)
class StdGroup:
    """Different benchmarks with the same standard deviation of representatives."""

    std: float
    benchmarks: tuple[tuple[str, ...], ...]


def unbalanced(
    benchmarks: Sequence[Sequence[str]], categories: Categories, *, times: int = 5, seed: int = 0
) -> list[tuple[str, ...]]:
    """Every benchmark after 1, 2, … ``times`` random substitutions, each drawn evenly, as far as they are possible."""
    if times < 1:
        raise InputError(f"{times} substitutions; expected at least 1")
    draw = random.Random(check_seed(seed))
    results: list[tuple[str, ...]] = []
    for benchmark in benchmarks:
        current = tuple(benchmark)
        for _ in range(times):
            possible = possible_substitutions(current, categories)
            if not possible:
                break
            removed, added = possible[draw.randrange(len(possible))]
            members = {*current, added} - {removed}
            current = tuple(corruption for corruption in categories.corruptions if corruption in members)
            results.append(current)
    return results


def group_by_std(benchmarks: Sequence[Sequence[str]], categories: Categories) -> list[StdGroup]:
    """Different benchmarks grouped by the exact standard deviation of their representatives, lowest first."""
    groups: dict[tuple[int, int, int], dict[frozenset[str], tuple[str, ...]]] = {}
    for benchmark in benchmarks:
        counts = _counts(benchmark, categories).values()
        # Whole numbers that decide the deviation; it is not compared in floating point.
        key = (len(counts), len(benchmark), sum(count * count for count in counts))
        groups.setdefault(key, {}).setdefault(frozenset(benchmark), tuple(benchmark))
    results = [
        StdGroup(representation_std(next(iter(group.values())), categories), tuple(group.values()))
        for group in groups.values()
    ]
    return sorted(results, key=lambda group: group.std)
