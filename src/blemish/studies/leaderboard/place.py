"""One's own model among the published ones: where it would stand, and what differs in protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blemish.benchmarks.files import built_in, load_benchmark
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.statistics import Estimate, percentile_interval, wilson_interval
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import published_baseline
from blemish.metrics.caveats import clean_chance, part_of
from blemish.metrics.cells import Weights, equal_weights, mce_weights
from blemish.metrics.formulas import Array
from blemish.metrics.imports import PublishedTable, import_infos, imported_table
from blemish.metrics.looks import level_and_replicates
from blemish.metrics.rank_groups import holm
from blemish.metrics.scores import resampled, sample_means
from blemish.metrics.table import Means, read_tables
from blemish.metrics.unpaired import p_values_of_intervals

_AROUND = 3
_CLASSES = {"imagenet-c": 1000, "cifar10-c": 10, "cifar100-c": 100}


@dataclass(frozen=True)
class Placed:
    """A model among those of a published table: its own number computed as theirs, and the ranks that it may have.

    ``above`` and ``below`` are the nearest published models, by name with their numbers. ``differs`` says in what its
    protocol is another; the place means what it says only where that is nothing.
    """

    run: Run
    table: PublishedTable
    value: Estimate
    low: int
    high: int
    above: tuple[tuple[str, Estimate], ...]
    below: tuple[tuple[str, Estimate], ...]
    differs: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many there are, this one included."""
        return len(self.table.rows) + 1

    @property
    def rank(self) -> str:
        """The range of ranks as text."""
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"


def placed(
    run: Run, *, level: float = 0.95, replicates: int = 1000, report: ProgressReport = tell_nobody
) -> tuple[list[Placed], list[str]]:
    """The places of a model in all published tables of its benchmark, and why it has none in some."""
    if (chance := clean_chance(run)) is not None and chance.near:
        return [], [f"{run.name}: {chance}; it has no place"]
    own, plain = part_of(run), [c for c in run.conditions if not c.is_sequence and c.other is None]
    benchmark = run.info.benchmark.name if own is None else own.benchmark
    names = [name for name, info in import_infos().items() if info.benchmark == benchmark]
    places, reasons = [], []
    used, count = level_and_replicates(level, replicates, run)
    if names:
        finished = [condition for condition in plain if run.finished(condition)]
        tables = [table.only("correct") for table in read_tables(run, finished, report=report)]
        point = sample_means(tables)
        replicated = resampled(tables, replicates=count, seed=0, report=report)
        for name in names:
            table = imported_table(name, level=level)
            weights = _weights(table)
            if not weights:
                reasons.append(f"{table.info.title}: no place, for it is not known what its number is a mean of")
                continue
            if lost := [text for text in weights if ("correct", text) not in point]:
                reasons.append(f"{table.info.title}: no place, for {lost[0]} was not measured ({len(lost)} in all)")
                continue
            value = float(_number(weights, point))
            interval = percentile_interval(value, np.asarray(_number(weights, replicated)), level=used)
            places.append(_place(run, table, interval, level))
    for condition in run.conditions:
        if str(condition).startswith("natural:") and run.finished(condition):
            places += _natural(run, str(condition), level)
    return places, reasons


def _weights(table: PublishedTable) -> Weights:
    """Those of the table; of a claimed number, those that its metric has of the whole benchmark, if it is known."""
    if table.weights or table.info.benchmark not in built_in():
        return table.weights
    own = [str(condition) for condition in load_benchmark(table.info.benchmark).conditions if condition.steps]
    return mce_weights(own, published_baseline().errors) if table.info.metric == "mce" else equal_weights(own)


def _number(weights: Weights, means: Means) -> Array:
    return np.asarray(sum(weight * (1 - means["correct", text]) for text, weight in weights.items()))


def _natural(run: Run, text: str, level: float) -> list[Placed]:
    name = text.removeprefix("natural:")
    tables = [imported_table(key, level=level) for key, info in import_infos().items() if info.benchmark == name]
    if not tables:
        return []
    correct = run[text].correct
    share = wilson_interval(float((~correct).sum()), len(correct), level=level).scaled(100)
    return [_place(run, table, share, level) for table in tables]


def _place(run: Run, table: PublishedTable, value: Estimate, level: float) -> Placed:
    rows = sorted(table.rows, key=lambda row: row.value.value)
    p_values = p_values_of_intervals([value, *(row.value for row in rows)], level=level)[0, 1:]
    told = holm(p_values) <= 1 - level
    better = [row.value.value < value.value for row in rows]
    low = 1 + sum(bool(apart and up) for apart, up in zip(told, better, strict=True))
    high = 1 + len(rows) - sum(bool(apart and not up) for apart, up in zip(told, better, strict=True))
    position = sum(better)
    return Placed(
        run,
        table,
        value,
        low,
        high,
        tuple((row.model, row.value) for row in rows[max(0, position - _AROUND) : position]),
        tuple((row.model, row.value) for row in rows[position : position + _AROUND]),
        tuple(protocol_differences(run, table)),
    )


def protocol_differences(run: Run, table: PublishedTable) -> list[str]:
    """In what the protocol of a run is known to differ from that of a published table, as sentences."""
    info, protocol, data = table.info, run.info.protocol, run.info.data
    lines = []
    if info.pixels == "stored" and protocol.pixels != "stored":
        kept = "stored as JPEG of quality 85" if protocol.storage == "jpeg85" else "raw"
        lines.append(f"Pixels: theirs are the published files, these were made here and are {kept}: other draws.")
    elif info.pixels == "made in memory" and (protocol.pixels == "stored" or protocol.storage != "raw"):
        lines.append("Pixels: theirs were made in memory and never stored, these were stored.")
    elif info.pixels == "made in memory":
        lines.append("Pixels: theirs were made in memory by other code with other draws.")
    if info.pixels != "photographs" and (
        data.images != info.images or data.selection != "all" or info.selection != "all"
    ):
        theirs = f"{info.images:,} (all)" if info.selection == "all" else info.selection
        lines.append(f"Images: theirs are {theirs}; these are {data.images:,} ({data.selection}).")
    expected = _CLASSES.get(info.benchmark)
    if expected is not None and data.classes not in (None, expected):
        lines.append(f"Classes: theirs are {expected:,}, these are {data.classes:,}.")
    if info.benchmark == "imagenet-c":
        if protocol.crop != 224 or protocol.preset not in ("imagenet", None):
            lines.append(f"Size: corruptions of 224 pixels there, here crop {protocol.crop}, preset {protocol.preset}.")
        if protocol.frost not in (None, "reference"):
            lines.append(f"Frost: made with {protocol.frost} photographs, not with the published ones.")
    if info.view.startswith("each model's own"):
        lines.append(f"Input: theirs is {info.view}.")
    if info.divisor is not None and info.metric == "mce":
        lines.append(f"Divisor: both are divided by the errors of {info.divisor} on their images, not on these.")
    training = run.info.model.training
    if training is not None and training.corruptions:
        lines.append(f"Training: {run.name} has seen {', '.join(training.corruptions)}.")
    card = run.info.model.card
    if card is not None and card.remark is not None:
        lines.append(f"Training: {run.name} {card.remark}.")
    return lines


def places_of(
    runs: Sequence[Run], *, level: float = 0.95, replicates: int = 1000, report: ProgressReport = tell_nobody
) -> tuple[list[Placed], list[str]]:
    """The places of several models."""
    every = [placed(run, level=level, replicates=replicates, report=report) for run in runs]
    return [place for places, _ in every for place in places], [why for _, reasons in every for why in reasons]
