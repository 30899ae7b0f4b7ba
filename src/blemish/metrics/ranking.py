"""Runs ranked by their headline, with paired tests of all pairs: what separates them, and what does not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blemish.benchmarks.condition import CLEAN
from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.resampling import Swaps, Weighted, stream_of
from blemish.core.settings import differing
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import Baseline
from blemish.metrics.caveats import clean_chance, headline_name, part_of
from blemish.metrics.compare import protocol_differences
from blemish.metrics.formulas import Array
from blemish.metrics.looks import level_and_replicates
from blemish.metrics.maker import Metric
from blemish.metrics.paired import swap_p_value, swapped_means
from blemish.metrics.plan import make_plan
from blemish.metrics.quantities import main_quantity
from blemish.metrics.rank_groups import Place, rank_groups
from blemish.metrics.scores import as_baseline, finished, sample_means
from blemish.metrics.table import Key, Means, Table, drawn_with, read_tables
from blemish.metrics.titles import TITLES

_IN_TAIL = 2
"""As many swaps as leave room for two in the tail that the strictest of all corrected tests has."""


@dataclass(frozen=True)
class Ranking:
    """Models in order by one metric, and those that have no rank with the reason; places and keys index the runs."""

    metric: str
    places: tuple[Place, ...]
    unranked: dict[int, str]
    pairs: int
    swaps: int
    level: float


def comparable(runs: Sequence[Run]) -> list[list[int]]:
    """The runs in sets that were measured alike, so that ranks mean something within each; as places in the list."""
    sets: list[list[int]] = []
    for index, run in enumerate(runs):
        for members in sets:
            if not _unlike(runs[members[0]], run):
                members.append(index)
                break
        else:
            sets.append([index])
    return sets


def _unlike(first: Run, second: Run) -> list[str]:
    """In what two runs differ that changes their headline: how they were measured, and what they are headed by."""
    lines = protocol_differences(first, second)
    for field in ("name", "metric", "baseline", "part_of"):
        before, after = (getattr(run.info.benchmark, field) for run in (first, second))
        lines += [f"{name} is {a} and {b}" for name, a, b in differing(before, after, f"benchmark.{field}")]
    return lines


def rank_runs(
    runs: Sequence[Run],
    *,
    baseline: Baseline | Run | str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    report: ProgressReport = tell_nobody,
) -> Ranking:
    """Rank runs that were measured alike by their headline.

    Every pair is tested as `compare` does: the answers to each image change places, all together, with probability ½.
    The p-values are corrected over all pairs. Models near chance have no rank, and neither have those whose headline
    cannot be computed; where none has one, as without a baseline, the mean error, or what the task has in its place,
    stands in.
    """
    for run in runs[1:]:
        if unlike := _unlike(runs[0], run):
            raise InputError(f"{runs[0].name} and {run.name} were not measured in the same way: {unlike[0]}")
    unranked: dict[int, str] = {}
    known: dict[int, list[Table]] = {}
    for index, run in enumerate(runs):
        chance = clean_chance(run)
        if chance is not None and chance.near:
            unranked[index] = str(chance)
        else:
            known[index] = read_tables(run, finished(run), report=report)
    metric, chosen = _metric(runs, known, baseline, unranked)
    levels = [level_and_replicates(level, replicates, run) for run in runs] or [(level, replicates)]
    pairs = len(chosen) * (len(chosen) - 1) // 2
    # The smallest p that swaps can give is 1/(swaps + 1), and the correction multiplies it by the number of pairs.
    swaps = max(max(count for _, count in levels), math.ceil(_IN_TAIL * pairs / (1 - level) - 1e-9))
    points = {index: sample_means(known[index]) for index in chosen}
    signed = _signed([known[index] for index in chosen], metric, swaps=swaps, seed=seed, report=report)
    values = [float(metric.function(points[index])) for index in chosen]
    p_values = np.ones((len(chosen), len(chosen)))
    for one in range(len(chosen)):
        for other in range(one):
            both = points[chosen[one]], points[chosen[other]]
            pair = known[chosen[one]], known[chosen[other]]
            counted = _counted_anew(*pair, metric, swaps=swaps, seed=seed, report=report)
            swapped = _swapped_difference(metric, both, (signed[one], signed[other]), counted)
            p_values[one, other] = p_values[other, one] = swap_p_value(values[other] - values[one], swapped)
    title = TITLES[metric.name]
    places = rank_groups(
        [value * title.scale for value in values],
        p_values,
        higher_is_better=title.higher_is_better,
        level=max(used for used, _ in levels),
    )
    renamed = tuple(Place(chosen[place.index], place.value, place.low, place.high, place.groups) for place in places)
    return Ranking(metric.name, renamed, unranked, pairs, swaps, level)


def _metric(
    runs: Sequence[Run],
    known: dict[int, list[Table]],
    baseline: Baseline | Run | str | None,
    unranked: dict[int, str],
) -> tuple[Metric, list[int]]:
    """What is ranked by, and the runs that have it on the images that all have."""
    plans: dict[int, dict[str, Metric]] = {}
    whys: dict[int, dict[str, str]] = {}
    for index, tables in known.items():
        run = runs[index]
        keys = [key for table in tables for key in table]
        partial = part_of(run) is not None
        plan = make_plan(run.conditions, keys, as_baseline(run, baseline), family=run.family, partial=partial)
        plans[index] = {metric.name: metric for metric in plan.metrics if metric.scope == "benchmark"}
        whys[index] = {name: item.why for item in plan.missing if not item.of for name in item.names}
    if not plans:
        raise InputError("no model is better than chance; expected at least one to rank")
    name = headline_name(runs[0])
    if not any(name in plan for plan in plans.values()):
        name = main_quantity(kind for tables in known.values() for table in tables for kind, _ in table.columns)
    chosen = [index for index, plan in plans.items() if name in plan]
    if not chosen:
        raise InputError(f"no model has a {TITLES[name].title}; expected at least one to rank")
    for index in plans:
        if index not in chosen:
            unranked[index] = whys[index].get(name, "it could not be computed")
    first = chosen[0]
    for index in chosen[1:]:
        for one, other in zip(known[first], known[index], strict=False):
            if not np.array_equal(one.images, other.images):
                raise InputError(f"{runs[first].name} and {runs[index].name} do not have records of the same images")
    return plans[first][name], chosen


def _signed(
    models: Sequence[list[Table]], metric: Metric, *, swaps: int, seed: int, report: ProgressReport
) -> list[dict[Key, Array]]:
    """Signed means of the columns that the metric needs, with the same signs for all models.

    The signed mean of a difference is the difference of these: each model is read through once, not once for each pair.
    """
    signed: list[dict[Key, Array]] = []
    for tables in models:
        own: dict[Key, Array] = {}
        for table in tables:
            needed = {k: table[k] for k in _needed(table, metric) if not isinstance(table[k], Weighted)}
            if not needed:
                continue
            whole, rows = drawn_with(tables, table)
            own |= Swaps(len(whole.images), swaps, seed, stream_of(whole.name)).means(needed, rows, report=report)
        signed.append(own)
    return signed


def _needed(table: Table, metric: Metric) -> list[Key]:
    wanted = {str(condition) for condition in (*metric.conditions, CLEAN)}
    return [key for key in table if key[1] in wanted and key[0] not in ("gaps", "confidence")]


def _counted_anew(
    first: Sequence[Table], second: Sequence[Table], metric: Metric, *, swaps: int, seed: int, report: ProgressReport
) -> tuple[Means, Means]:
    """Columns that are no means over images, such as average precision: they are counted again for each swap."""
    sides: tuple[dict[Key, Array], dict[Key, Array]] = ({}, {})
    for table, partner in zip(first, second, strict=True):
        if keys := [key for key in _needed(table, metric) if isinstance(table[key], Weighted)]:
            one, other = table.only_keys(keys), partner.only_keys(keys)
            swapped = swapped_means(one, other, replicates=swaps, seed=seed, tables=first, report=report)
            for side, means in zip(sides, swapped, strict=True):
                side.update(means)
    return sides


def _swapped_difference(
    metric: Metric, points: tuple[Means, Means], signed: tuple[Means, Means], counted: tuple[Means, Means]
) -> Array:
    """The second minus the first, for all swaps."""
    one, other = points
    sides: tuple[dict[Key, Array], dict[Key, Array]] = (dict(counted[0]), dict(counted[1]))
    for key in signed[0]:
        middle, half = (one[key] + other[key]) / 2, (signed[0][key] - signed[1][key]) / 2
        sides[0][key], sides[1][key] = middle + half, middle - half
    before, after = (metric.function(side) for side in sides)
    difference: Array = after - before
    if not np.isfinite(difference).all():
        raise InputError(f"{TITLES[metric.name].title} is undefined in some swaps: there are too few images for a test")
    return difference
