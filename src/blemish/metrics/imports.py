"""Published tables of many models that come with the library, each with its source and what it can be compared with.

Errors per cell (RobustBench, the ImageNet testbed), one number per model (timm, open_clip, the README of ImageNet-C),
and tables of test-time adaptation.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.files import built_in, load_benchmark
from blemish.core.csv_files import parse_csv
from blemish.core.errors import InputError
from blemish.core.statistics import Estimate
from blemish.core.typed import optional_field, read_typed
from blemish.corruptions.catalog import hint
from blemish.metrics.baselines import published_baseline
from blemish.metrics.cells import Weights, equal_weights, interval_of_cells, interval_of_claim, mce_weights
from blemish.metrics.timm_table import TimmResult, timm_results

Holds = Literal["accuracy", "error", "value"]


@dataclass(frozen=True)
class TableInfo:
    """What is to be known of a table of published numbers.

    ``cells`` says what its cells hold, in percent; without cells, ``holds`` says it of the ``column`` with the number.
    An mCE is divided by the published AlexNet or by the row that ``divisor`` names. ``without`` are corruptions of the
    benchmark that the table does not have. ``can`` and ``cannot`` tell what it can be compared with.
    """

    name: str
    title: str
    benchmark: str
    tier: Literal["per-cell", "claimed"]
    metric: Literal["mce", "error"]
    source: str
    images: int | None = None
    selection: str = "all"
    pixels: str = ""
    view: str = ""
    can: tuple[str, ...] = ()
    cannot: tuple[str, ...] = ()
    cells: Literal["accuracy", "error"] | None = optional_field()
    holds: Holds = optional_field("value")
    divisor: str | None = optional_field()
    without: tuple[str, ...] = optional_field(())
    date: str = optional_field("")
    licence: str = optional_field("")
    file: str = optional_field("")
    column: str = optional_field("")
    clean_column: str = optional_field("clean")

    @property
    def protocol(self) -> dict[str, str]:
        """How its numbers came about, by name, for people."""
        images = "not said" if self.images is None else f"{self.images:,}"
        lines = {"images": images, "which": self.selection, "pixels": self.pixels, "shown": self.view}
        divided = {"divided by": _divisor_text(self.divisor)} if self.metric == "mce" else {}
        return {key: text for key, text in {**lines, **divided}.items() if text}


def _divisor_text(divisor: str | None) -> str:
    return "the published AlexNet" if divisor is None else f"{divisor}, measured on the same images"


@dataclass(frozen=True)
class PublishedRow:
    """A model of a published table: its number with an interval, clean error and errors per cell, all in percent."""

    model: str
    value: Estimate
    clean: float | None = None
    cells: Mapping[str, float] = field(default_factory=dict)
    parameters: int | None = None
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PublishedTable:
    """A published table; ``weights`` are those of its cells in the number that models are ranked by."""

    info: TableInfo
    rows: tuple[PublishedRow, ...]
    weights: Weights = field(default_factory=dict)


_DETAILS = ("architecture", "paper", "venue", "link", "data", "size", "crop", "interpolation")


def make_table(info: TableInfo, rows: Sequence[Mapping[str, str]], *, level: float = 0.95) -> PublishedTable:
    """A table of texts as numbers: errors in percent, the number of each model, and its interval."""
    rows = _told_apart(rows)
    named = [row["model"].strip() for row in rows]
    if twice := [name for name, count in Counter(named).items() if count > 1]:
        raise InputError(f"{info.name}: model {twice[0]} twice")
    if not rows or not all(named):
        raise InputError(f"{info.name}: {'a model without a name' if rows else 'no models'}")
    return _of_cells(info, rows, level) if info.cells is not None else _of_claims(info, rows, level)


def _told_apart(rows: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Rows of one model at several sizes of images have the size in their names."""
    counts = Counter(row["model"] for row in rows)
    return [
        {**row, "model": f"{row['model']} ({row['size']} pixels)"}
        if counts[row["model"]] > 1 and "size" in row
        else row
        for row in rows
    ]


def _of_cells(info: TableInfo, rows: Sequence[Mapping[str, str]], level: float) -> PublishedTable:
    if info.images is None:
        raise InputError(f"{info.name}: errors per cell, but not of how many images; expected images")
    conditions = _conditions(info, [key for key in rows[0] if "@" in key])
    errors = {row["model"]: {text: _error(info, row, text, info.cells) for text in conditions} for row in rows}
    weights = _weights(info, conditions, errors)
    others = [row for row in rows if row["model"] != info.divisor]
    return PublishedTable(
        info,
        tuple(
            PublishedRow(
                row["model"],
                interval_of_cells(errors[row["model"]], weights, info.images, level=level),
                _clean(info, row),
                {text: 100 * error for text, error in errors[row["model"]].items()},
                _parameters(row),
                _details(row),
            )
            for row in others
        ),
        weights,
    )


def _of_claims(info: TableInfo, rows: Sequence[Mapping[str, str]], level: float) -> PublishedTable:
    published = []
    for row in rows:
        if not row.get(info.column, "").strip():
            continue
        number = _number(info, row, info.column)
        value = 100 - number if info.holds == "accuracy" else number
        published.append(
            PublishedRow(
                row["model"], _claim(info, value, level), _clean(info, row), {}, _parameters(row), _details(row)
            )
        )
    return PublishedTable(info, tuple(published))


def _claim(info: TableInfo, value: float, level: float) -> Estimate:
    """A claimed number with the interval of so many images; without their number, no interval."""
    if info.images is None:
        return Estimate(value, value, value)
    if info.metric == "error":
        return interval_of_claim(value, {"": 100.0}, info.images, level=level)
    conditions = _conditions(info, [])
    return interval_of_claim(value, _weights(info, conditions, {}), info.images, level=level)


def _benchmark(info: TableInfo) -> Benchmark | None:
    return load_benchmark(info.benchmark) if info.benchmark in built_in() else None


def _conditions(info: TableInfo, columns: Sequence[str]) -> list[str]:
    """The cells that count: those of the benchmark, where it is known here, in its order."""
    benchmark = _benchmark(info)
    if benchmark is None:
        return list(columns)
    conditions = [c for c in benchmark.conditions if c.steps and c.group not in info.without]
    wanted = [str(condition) for condition in conditions]
    if columns and (missing := [text for text in wanted if text not in columns]):
        raise InputError(f"{info.name}: no column {missing[0]} ({len(missing)} cells are missing)")
    return wanted


def _weights(info: TableInfo, conditions: list[str], errors: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    if info.metric == "error":
        return equal_weights(conditions)
    if info.divisor is None:
        return mce_weights(conditions, published_baseline().errors)
    if info.divisor not in errors:
        raise InputError(f"{info.name}: no row {info.divisor} to divide by")
    return mce_weights(conditions, errors[info.divisor])


def _error(info: TableInfo, row: Mapping[str, str], column: str, holds: Holds | None) -> float:
    number = _number(info, row, column)
    return (100 - number) / 100 if holds == "accuracy" else number / 100


def _number(info: TableInfo, row: Mapping[str, str], column: str) -> float:
    text = row.get(column, "")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    most = float("inf") if column == info.column and info.holds == "value" else 100
    if not 0 <= value <= most or value == float("inf"):
        raise InputError(f"{info.name}: {column} of {row['model']} is {text!r}; expected a number in percent")
    return value


def _clean(info: TableInfo, row: Mapping[str, str]) -> float | None:
    """The clean error. Tables hold clean accuracies, but for those that hold errors in all cells."""
    if not row.get(info.clean_column, "").strip():
        return None
    number = _number(info, row, info.clean_column)
    return number if "error" in (info.cells, info.holds) else 100 - number


def _parameters(row: Mapping[str, str]) -> int | None:
    text = row.get("parameters_m", "").strip()
    return round(float(text) * 1e6) if text else None


def _details(row: Mapping[str, str]) -> dict[str, str]:
    return {key: row[key] for key in _DETAILS if row.get(key)}


def _folder() -> Any:
    return resources.files("blemish.metrics") / "imported"


@cache
def import_infos() -> Mapping[str, TableInfo]:
    """What is known of the tables that come with the library, by name."""
    content = json.loads((_folder() / "tables.json").read_text(encoding="utf-8"))
    return {entry["name"]: read_typed(TableInfo, entry) for entry in content["tables"]}


@cache
def imported_rows(file: str) -> tuple[Mapping[str, str], ...]:
    """The rows of a table that comes with the library, as texts by column: ``timm``, ``testbed_natural.csv`` …"""
    if file == "timm":
        return tuple(_timm_row(row) for rows in timm_results().values() for row in rows)
    header, *rows = parse_csv((_folder() / file).read_text(encoding="utf-8"))
    return tuple(dict(zip(header, row, strict=True)) for row in rows)


def _timm_row(row: TimmResult) -> Mapping[str, str]:
    about = {"model": row.name, "size": str(row.size), "crop": f"{row.crop:g}", "interpolation": row.interpolation}
    accuracies = {name: f"{100 * rate:.10g}" for name, rate in row.accuracies.items()}
    return {**about, "parameters_m": str(row.parameters), **accuracies}


@cache
def imported_table(name: str, *, level: float = 0.95) -> PublishedTable:
    """A table that comes with the library, with intervals of this level.

    >>> [round(row.value.value, 2) for row in imported_table("robustbench/imagenet-c").rows if "R50" in row.model]
    [76.38]
    """
    infos = import_infos()
    if name not in infos:
        raise InputError(f"published table {name!r}; {hint(name, list(infos))}")
    return make_table(infos[name], imported_rows(infos[name].file), level=level)


@dataclass(frozen=True)
class AdaptationTable:
    """A published table of test-time adaptation: mean errors in percent by method, with deviations where given."""

    id: str
    dataset: str
    setting: str
    model: str
    kind: str
    source: str
    note: str
    rows: tuple[tuple[str, float, float | None], ...]


@cache
def adaptation_tables() -> tuple[AdaptationTable, ...]:
    """The tables of test-time adaptation that come with the library."""
    content = json.loads((_folder() / "adaptation.json").read_text(encoding="utf-8"))
    return tuple(read_typed(AdaptationTable, entry) for entry in content["tables"])
