"""From the records of a run to an entry, and from a CSV of published numbers to one; and what an entry claims."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from blemish.benchmarks.condition import CLEAN
from blemish.core.csv_files import read_csv
from blemish.core.errors import InputError, notify
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.reading import is_there
from blemish.core.statistics import Estimate
from blemish.evaluation.runs import Run
from blemish.metrics.caveats import clean_chance, headline_name, part_of
from blemish.metrics.imports import TableInfo
from blemish.metrics.looks import level_and_replicates
from blemish.metrics.maker import Metric
from blemish.metrics.plan import make_plan
from blemish.metrics.scores import as_baseline, measured, resampled, sample_means, trained
from blemish.metrics.table import read_tables
from blemish.metrics.titles import TITLES
from blemish.studies.leaderboard.bits import Bits
from blemish.studies.leaderboard.entry import (
    ENTRY_FILE,
    FORMAT,
    TABLE_SUFFIX,
    ModelEntry,
    ModelHeader,
    Speed,
    TableEntry,
    write_model_entry,
    write_table_entry,
)

CLEAN_ERROR = "clean_error"
_OF_OTHERS = ("flips", "mfr", "natural_gap")


@dataclass(frozen=True)
class Numbers:
    """What outcomes alone tell of a model: its headline and others by name, and errors by condition, in percent.

    Of a benchmark without a baseline the headline may not be known; then the mean error stands in. ``trained_on`` are
    the conditions with a corruption that the model is declared to have been trained on.
    """

    headline: str
    values: dict[str, Estimate]
    cells: dict[str, float]
    trained_on: tuple[str, ...] = ()

    @property
    def value(self) -> Estimate:
        """The headline."""
        return self.values[self.headline]


def numbers_of(
    run: Run, *, level: float = 0.95, replicates: int = 1000, report: ProgressReport = tell_nobody
) -> Numbers:
    """The numbers of a run's outcomes, with intervals over its images where there are ``replicates``."""
    tables = [table.only("correct") for table in read_tables(run, run.conditions, report=report)]
    keys = [key for table in tables for key in table]
    plan = make_plan(run.conditions, keys, as_baseline(run, None), family=run.family, partial=part_of(run) is not None)
    point = sample_means(tables)
    used, count = level_and_replicates(level, max(1, replicates), run)
    replicated = resampled(tables, replicates=count, seed=0, report=report) if replicates else {}

    def number(metric: Metric) -> Estimate | None:
        """None where it is not defined, as what is relative to an accuracy of 0."""
        if replicates:
            try:
                return measured(metric, tables, point, replicated, level=used)
            except InputError:
                return None
        value = float(metric.function(point)) * TITLES[metric.name].scale
        return Estimate(value, value, value) if math.isfinite(value) else None

    wanted = {metric.name: metric for metric in plan.metrics if metric.scope == "benchmark"}
    errors = {m.of: m for m in plan.metrics if m.scope == "condition" and m.name == "error"}
    wanted[CLEAN_ERROR] = errors[str(CLEAN)]
    values = {name: estimate for name, metric in wanted.items() if (estimate := number(metric)) is not None}
    headline = headline_name(run)
    cells = {text: 100 * float(metric.function(point)) for text, metric in errors.items() if text != str(CLEAN)}
    seen = tuple(text for text in cells if trained(run, errors[text]))
    return Numbers(headline if headline in values else "error", values, cells, seen)


def make_entry(
    run: Run,
    board: Path,
    *,
    speed: Speed | None = None,
    link: str = "",
    notes: str = "",
    overwrite: bool = False,
    report: ProgressReport = tell_nobody,
) -> ModelEntry:
    """Write the entry of a run into a leaderboard."""
    folder = entry_folder(run, board, overwrite=overwrite)
    run = plain_part(run)
    bits = bits_of(run, report=report)
    info = run.info
    header = ModelHeader(
        format=FORMAT,
        kind="model",
        model=info.model,
        benchmark=info.benchmark,
        protocol=info.protocol,
        data=info.data,
        stages=len(info.stages),
        until=info.until,
        bits="",
        claims={},
        made_with=info.made_with,
        speed=speed,
        link=link,
        notes=notes,
    )
    header = replace(header, claims=claims_of(ModelEntry(folder, header, bits)))
    return write_model_entry(folder, header, bits)


def entry_folder(run: Run, board: Path, *, overwrite: bool = False) -> Path:
    """Where the entry of a run belongs; refused where there is one already."""
    folder = board / run.folder.name
    if is_there(folder / ENTRY_FILE) and not overwrite:
        raise InputError(f"{folder}: an entry is there already; replace it with --overwrite, or choose another folder")
    return folder


def claims_of(entry: ModelEntry) -> dict[str, float]:
    """What the bits of an entry give, in percent: its headline, its clean error, and other means."""
    numbers = numbers_of(entry.run, replicates=0)
    return {name: estimate.value for name, estimate in numbers.values.items()}


def plain_part(run: Run) -> Run:
    """The run without sequences and natural sets, of which there is no bit for each image and condition.

    The headline does not depend on them, unless there is nothing else.
    """
    info, conditions = run.info, run.conditions
    kept = [c for c in conditions if not c.is_sequence and c.other is None]
    if CLEAN not in kept or len(kept) == 1 or info.benchmark.metric in _OF_OTHERS:
        raise InputError(
            f"{run.folder}: {TITLES[info.benchmark.metric].title} is no mean over images that are right or wrong; "
            "expected corruptions of the benchmark's own images"
        )
    if len(kept) == len(conditions):
        return run
    notify(f"{run.folder}: {len(conditions) - len(kept)} sequences or natural sets are left out of the entry")
    names = {name for condition in kept for name in condition.names()}
    corruptions = {name: version for name, version in info.protocol.corruptions.items() if name in names}
    return replace(
        run,
        info=replace(
            info,
            benchmark=replace(info.benchmark, conditions=[str(condition) for condition in kept]),
            protocol=replace(info.protocol, corruptions=corruptions),
            data=replace(info.data, others={}),
        ),
    )


def bits_of(run: Run, *, report: ProgressReport = tell_nobody) -> Bits:
    """The outcomes of a finished run; one near chance is refused, for nothing could be ranked."""
    if missing := [str(c) for c in run.conditions if not run.finished(c)]:
        raise InputError(f"{run.folder}: {missing[0]} is not finished; run the same command again to finish")
    chance = clean_chance(run)
    if chance is not None and chance.near:
        raise InputError(f"{run.folder}: {chance}: nothing that is measured of it means anything")
    clean = run.records(CLEAN)
    order = np.argsort(clean.images, kind="stable")
    columns = []
    for number, condition in enumerate(run.conditions):
        report(number, len(run.conditions), f"reading {run.name}")
        records = run.records(condition)
        own = np.argsort(records.images, kind="stable")
        if not np.array_equal(records.images[own], clean.images[order]):
            raise InputError(f"{run.folder}: {condition} was measured on other images than clean")
        columns.append(records.correct[own])
    return Bits(clean.images[order], clean.labels[order], np.stack(columns, axis=1))


def import_table(file: Path, board: Path, info: TableInfo, *, overwrite: bool = False) -> TableEntry:
    """Write a CSV of published numbers into a leaderboard: columns model, clean, fog@1 …, or the one of the info."""
    header, *rows = read_csv(file) or [[]]
    if "model" not in header:
        raise InputError(f"{file}: columns {', '.join(header) or 'nothing'}; expected model, and numbers in percent")
    if lost := [number for number, row in enumerate(rows, start=2) if len(row) != len(header)]:
        raise InputError(f"{file}, line {lost[0]}: {len(rows[lost[0] - 2])} cells; expected {len(header)}")
    _check_columns(file, info, header)
    _check_unit(file, info, [dict(zip(header, row, strict=True)) for row in rows])
    target = board / f"{_slug(info.name)}{TABLE_SUFFIX}"
    if is_there(target) and not overwrite:
        raise InputError(f"{target} is there already; choose another --name, or replace it with --overwrite")
    return write_table_entry(target, info, tuple(dict(zip(header, row, strict=True)) for row in rows))


def _check_columns(file: Path, info: TableInfo, header: Sequence[str]) -> None:
    if info.cells is None and info.column not in header:
        raise InputError(f"{file}: no column {info.column!r}, and none such as fog@1; expected the number to rank by")


def _check_unit(file: Path, info: TableInfo, rows: Sequence[Mapping[str, str]]) -> None:
    """Refuse fractions in place of percent. Of errors nobody knows: all of them may be below 1 %, so that is said."""
    texts = [text for row in rows for key, text in row.items() if ("@" in key if info.cells else key == info.column)]
    numbers = [_float(text) for text in texts if text.strip()]
    if not numbers or not max(numbers) <= 1:
        return
    if (info.cells or info.holds) != "error":
        raise InputError(f"{file}: no number above 1; expected percent, such as 76.1 in place of 0.761")
    notify(f"{file}: no error above 1; taken as percent. If they are fractions, multiply them by 100")


def _float(text: str) -> float:
    """A number, or infinity in place of what is none, which is refused elsewhere with its place."""
    try:
        return float(text)
    except ValueError:
        return math.inf


def _slug(name: str) -> str:
    return "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in name).strip(".-") or "table"
