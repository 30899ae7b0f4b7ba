"""Two models on the same images: differences with intervals and tests; refused where protocols differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from blemish.benchmarks.condition import CLEAN
from blemish.core.errors import InputError
from blemish.core.printable import first_few
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.settings import differing
from blemish.core.statistics import Estimate
from blemish.evaluation.runs import Run, RunLike, as_pair
from blemish.metrics.baselines import Baseline
from blemish.metrics.caveats import (
    clean_chance,
    is_worth_saying,
    part_of,
    refuse_near_chance,
    undefined_where,
    with_confidences,
)
from blemish.metrics.consistency import Consistency, error_consistency
from blemish.metrics.formulas import Array
from blemish.metrics.looks import level_and_replicates
from blemish.metrics.maker import Metric, Missing, merged
from blemish.metrics.paired import mcnemar_p_value, swap_p_value, swapped_means
from blemish.metrics.plan import make_plan
from blemish.metrics.references import reference_named, references
from blemish.metrics.scores import as_baseline, estimate, finished, resampled, sample_means, trained
from blemish.metrics.table import Key, Table, read_tables, shared_images
from blemish.metrics.titles import TITLES, Part, Scope, partial_name

_FIELDS = {
    "protocol": (
        *("seed", "preset", "storage", "resize", "crop", "square", "centre"),
        *("pixels", "stored", "corruptions", "frost", "labels", "superclasses", "pool"),
    ),
    "data": ("fingerprint", "selection", "others"),
}


@dataclass(frozen=True)
class Difference:
    """A metric of two models, the second minus the first with its interval, and a p-value.

    ``test`` is ``mcnemar`` for single conditions, exact, and ``swap`` for all else.
    """

    name: str
    scope: Scope
    of: str
    first: float
    second: float
    difference: Estimate
    p_value: float
    test: str
    trained_on: tuple[bool, bool]

    @property
    def unit(self) -> str:
        """The unit: percent as a rule."""
        return TITLES[self.name].unit


@dataclass(frozen=True)
class Comparison:
    """Two runs beside each other. ``protocol_differences`` is empty unless they were compared in spite of some.

    ``part`` is set where both have only a part of a benchmark in common. ``near_chance`` tells of each model whether it
    is not better than chance on clean images, ``consistency`` whether they fail on the same ones.
    """

    first: str
    second: str
    metric: str
    rows: tuple[Difference, ...]
    missing: tuple[Missing, ...]
    protocol_differences: tuple[str, ...]
    images: int
    level: float
    replicates: int
    seed: int
    part: Part | None = None
    near_chance: tuple[bool, bool] = (False, False)
    consistency: Consistency | None = None

    @property
    def headline(self) -> Difference | None:
        """The benchmark's own metric, where it could be computed."""
        whole = [row for row in self.rows if (row.scope, row.name) == ("benchmark", self.metric)]
        return whole[0] if whole else None

    def find(self, name: str, of: str = "") -> Difference:
        """One difference."""
        for row in self.rows:
            if (row.name, row.of) == (name, of):
                return row
        raise InputError(f"{self.first} and {self.second}: no {name}{f' of {of}' if of else ''} to compare")

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain lists, dictionaries, texts and numbers."""
        return {
            **{
                name: getattr(self, name)
                for name in ("first", "second", "metric", "images", "level", "replicates", "seed")
            },
            "rows": [asdict(row) | {"unit": row.unit, "trained_on": list(row.trained_on)} for row in self.rows],
            "missing": [asdict(item) | {"names": list(item.names)} for item in self.missing],
            "protocol_differences": list(self.protocol_differences),
            "part": None if self.part is None else asdict(self.part),
            "near_chance": list(self.near_chance),
            "consistency": None if self.consistency is None else asdict(self.consistency),
        }


def compare(
    first: RunLike | Sequence[RunLike],
    second: RunLike | None = None,
    *,
    baseline: Baseline | Run | str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    seed: int = 0,
    allow_mismatch: bool = False,
    report: ProgressReport = tell_nobody,
) -> Comparison:
    """Every metric of two runs, their folders or a list of both, second less first, with a paired interval and test.

    Runs whose protocols differ in a way that changes the numbers are refused, unless ``allow_mismatch`` is set: then
    conditions and images that both have are compared, and the result lists the differences. ``report`` is told how far
    it has come.
    """
    first, second = as_pair(first, second)
    used, replicates = level_and_replicates(level, replicates, first, second)
    differences = protocol_differences(first, second)
    if differences and not allow_mismatch:
        raise InputError(
            f"{first.name} and {second.name} were not measured in the same way: {'; '.join(differences)}; "
            "--anyway, or allow_mismatch=True, compares them all the same"
        )
    of_second = set(finished(second))
    both = [condition for condition in finished(first) if condition in of_second]
    if not both:
        raise InputError(f"{first.name} and {second.name} have no finished condition in common")
    read = [read_tables(run, both, report=report) for run in (first, second)]
    one, other = _aligned(first, read[0], second, read[1], allow_mismatch=allow_mismatch)
    known = set(second.conditions)
    offered = [condition for condition in first.conditions if condition in known]
    keys = [key for table in one for key in table]
    part = _common_part(first, second, sum(condition != CLEAN for condition in offered))
    plan = make_plan(offered, keys, as_baseline(first, baseline), family=first.family, partial=part is not None)
    plan = with_confidences(plan, first, second)
    chances = (clean_chance(first), clean_chance(second))
    samples = _Samples(one, other, replicates, seed, report)
    metric_name = first.info.benchmark.metric
    rows, missing = [], list(plan.missing)
    for metric in plan.metrics:
        try:
            refuse_near_chance(metric, *chances)
            row = samples.difference(metric, used, (trained(first, metric), trained(second, metric)))
        except InputError as error:
            if is_worth_saying(metric):
                missing.append(Missing((metric.name,), metric.of, str(error)))
            continue
        rows.append(row)
    people = None
    if (name := first.info.benchmark.reference) in references():
        people = reference_named(name).kappa_between_people({str(condition) for condition in both})
    return Comparison(
        first=first.name,
        second=second.name,
        metric=metric_name if part is None else partial_name(metric_name),
        rows=tuple(rows),
        missing=merged(missing),
        protocol_differences=tuple(differences),
        images=len(one[0].images),
        level=level,
        replicates=replicates,
        seed=seed,
        part=part,
        near_chance=(chances[0] is not None and chances[0].near, chances[1] is not None and chances[1].near),
        consistency=error_consistency(
            one[0], other[0], level=used, replicates=replicates, seed=seed, people=people, report=report
        ),
    )


def _common_part(first: Run, second: Run, common: int) -> Part | None:
    """Which part of the larger benchmark two runs have in common; None for all of it."""
    wholes = []
    for run in (first, second):
        own = Part(common, sum(condition != CLEAN for condition in run.conditions), run.info.benchmark.name)
        wholes.append(replace(part, conditions=common) if (part := part_of(run)) is not None else own)
    largest = max(wholes, key=lambda part: part.whole)
    return largest if common < largest.whole else None


def protocol_differences(first: Run, second: Run) -> list[str]:
    """The fields in which two runs differ and that change numbers, each with both values."""
    lines = []
    for part, fields in _FIELDS.items():
        for field in fields:
            before, after = (getattr(getattr(run.info, part), field) for run in (first, second))
            lines += [f"{name} is {a} and {b}" for name, a, b in differing(before, after, f"{part}.{field}")]
    if _named(first) != _named(second):
        lines.append(f"task is {_named(first)} and {_named(second)}")
    else:
        lines += [f"{name} is {a} and {b}" for name, a, b in differing(first.info.task, second.info.task, "task")]
    one, other = (run.info.benchmark.conditions for run in (first, second))
    only = [[text for text in a if text not in b] for a, b in ((one, other), (other, one))]
    if any(only):  # another order changes nothing
        alone = [first_few(texts, 5) or "nothing" for texts in only]
        lines.append(f"benchmark.conditions: {alone[0]} in the first alone, {alone[1]} in the second alone")
    return lines


def _named(run: Run) -> str:
    task = run.info.task
    return "classes" if task is None else f"{task.name} ({', '.join(task.columns)})"


def _aligned(
    first: Run, one: Sequence[Table], second: Run, other: Sequence[Table], *, allow_mismatch: bool
) -> tuple[list[Table], list[Table]]:
    """Tables of both runs with the same images and columns."""
    pairs = []
    for table, partner in zip(one, other, strict=True):  # of the same conditions, so of the same sets
        images = shared_images(table, partner)
        if not allow_mismatch:
            for run, own, absent in ((second, table, first), (first, partner, second)):
                missing = np.setdiff1d(own.images, images, assume_unique=True)
                if len(missing):
                    raise InputError(f"image {missing[0]} of {absent.name} has no records in {run.folder}")
        if not len(images):
            raise InputError(
                f"{first.name} and {second.name} have no images in common{f' in {table.name}' if table.name else ''}"
            )
        keys = [key for key in table.columns if key in partner.columns]
        pairs.append((table.take(keys, images), partner.take(keys, images)))
    return [a for a, _ in pairs], [b for _, b in pairs]


class _Samples:
    """Two models' means: as measured, over the same resampled images, and with answers swapped."""

    def __init__(
        self, one: Sequence[Table], other: Sequence[Table], replicates: int, seed: int, report: ProgressReport
    ) -> None:
        self.tables = (one, other)
        self.points = (sample_means(one), sample_means(other))
        self.resamples = tuple(
            resampled(tables, replicates=replicates, seed=seed, report=report) for tables in self.tables
        )
        swapped: tuple[dict[Key, Array], dict[Key, Array]] = ({}, {})
        for table, partner in zip(one, other, strict=True):
            parts = swapped_means(table, partner, replicates=replicates, seed=seed, tables=one, report=report)
            for whole, part in zip(swapped, parts, strict=True):
                whole.update(part)
        self.swapped = swapped

    def difference(self, metric: Metric, level: float, trained_on: tuple[bool, bool]) -> Difference:
        """The second minus the first."""
        first, second = (metric.function(means) for means in self.points)
        before, after = (metric.function(means) for means in self.resamples)
        difference = estimate(metric, second - first, after - before, level=level)
        scale = TITLES[metric.name].scale
        p_value, test = self._test(metric, float(second - first))
        return Difference(
            name=metric.name,
            scope=metric.scope,
            of=metric.of,
            first=float(first) * scale,
            second=float(second) * scale,
            difference=difference,
            p_value=p_value,
            test=test,
            trained_on=trained_on,
        )

    def _test(self, metric: Metric, difference: float) -> tuple[float, str]:
        if metric.name in ("error", "accuracy") and metric.scope in ("condition", "natural"):
            key: Key = ("correct", metric.of)
            one, other = (next(table[key] for table in tables if key in table.columns) for tables in self.tables)
            if one.dtype == other.dtype == np.bool_:  # of several labels an image has a share
                return mcnemar_p_value(int((one & ~other).sum()), int((other & ~one).sum())), "mcnemar"
        one, other = (metric.function(means) for means in self.swapped)
        swapped = other - one
        if not np.isfinite(swapped).all():
            raise InputError(f"{undefined_where(metric)} in some swaps: there are too few images for a test")
        return swap_p_value(difference, swapped), "swap"
