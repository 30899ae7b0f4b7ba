"""Published errors of the same settings beside our own, with what differs."""

from __future__ import annotations

from collections.abc import Sequence

from blemish.metrics.imports import AdaptationTable, adaptation_tables
from blemish.reports.tables import NOTHING, Cell, Table, number
from blemish.studies.arena.results import ArenaInfo
from blemish.studies.arena.scores import Scored
from blemish.studies.arena.setting import orders

_SETTINGS = {
    "continual": ("continual",),
    "continual_ten_orders": ("continual, mean of ten orders",),
    "reset_each_shift": ("reset_each_shift", "reset_each_shift (one row: never reset)"),
    "gradual": ("gradual, mean of ten orders",),
    "mixed": ("mixed_domains",),
    "correlated_sorted": ("correlated",),
    "mixed_correlated": ("mixed_domains_correlated",),
    "label_shift": ("online imbalanced label shift (imbalance ratio infinite), reset per corruption",),
}
"""What the settings are called in the published tables that are meant."""

_ALL_IMAGES = ("reset_each_shift", "correlated_sorted", "mixed_correlated", "label_shift")
"""Settings whose tables show all 50,000 images of ImageNet-C, where those of others show 5,000."""

_DATA = {"imagenet-c": ("ImageNet-C", 5000, 64), "cifar10-c": ("CIFAR10-C", 10_000, 200)}
_DATA |= {"cifar100-c": ("CIFAR100-C", 10_000, 200)}
"""By benchmark: the data set, and the usual number of images and batch size there."""


def published_tables(setting: str, benchmark: str) -> list[AdaptationTable]:
    """Tables of methods' own publications for the same setting on the same data."""
    dataset = _DATA.get(benchmark, ("", 0, 0))[0]
    wanted = _SETTINGS.get(setting, ())
    return [
        table
        for table in adaptation_tables()
        if table.kind.startswith("primary") and table.dataset == dataset and table.setting in wanted
    ]


def published_table(setting: Scored, info: ArenaInfo) -> Table | None:
    """Our errors beside those that were published for this setting; none where there are none."""
    tables = published_tables(setting.name, info.benchmark)
    known = [(table, {name: error for name, error, _ in table.rows}) for table in tables]
    names = [
        name
        for name, entrant in setting.entrants.items()
        if entrant.published and any(name in errors for _, errors in known)
    ]
    if not names:
        return None
    rows = tuple(
        (
            Cell(name),
            Cell(number(100 * setting.entrants[name].error.value)),
            *(Cell(number(errors[name])) if name in errors else NOTHING for _, errors in known),
        )
        for name in names
    )
    networks = [table.model for table, _ in known]
    marks = [f" [{i}]" if networks.count(name) > 1 else "" for i, name in enumerate(networks, start=1)]
    titles = [name + mark for name, mark in zip(networks, marks, strict=True)]
    heads = ("method", f"here: {info.model.name}", *titles)
    notes = [f"Here differs: {'; '.join(differences(setting, info))}."]
    notes += [
        f"{title}: {table.source}{f'; {table.note}' if table.note else ''}."
        for title, (table, _) in zip(titles, known, strict=True)
    ]
    return Table(f"{setting.name}: published errors, %", heads, rows, notes=tuple(notes))


def differences(setting: Scored, info: ArenaInfo) -> Sequence[str]:
    """In what a setting here is not that of the published tables, as far as files tell; the network is always named."""
    _, images, batch = _DATA[info.benchmark]
    if info.benchmark == "imagenet-c" and setting.name in _ALL_IMAGES:
        images = 50_000
    differences = ["the network, unless it is the one that is named"]
    if info.images != images:
        differences.append(f"{info.images:,} images instead of {images:,}")
    elif images < 50_000 and info.benchmark == "imagenet-c" and info.image_list is None:
        differences.append("other 5,000 images than those of RobustBench's list")
    if setting.batch != batch:
        differences.append(f"batches of {setting.batch} instead of {batch}")
    if setting.severities != (5.0,) and setting.name != "gradual":
        differences.append(f"severity {', '.join(f'{severity:g}' for severity in setting.severities)} instead of 5")
    if missing := [name for name in orders()["standard"] if name not in info.corruptions]:
        differences.append(f"without {', '.join(missing)}")
    if extra := [name for name in info.corruptions if name not in orders()["standard"]]:
        differences.append(f"also {', '.join(extra)}")
    if setting.name == "gradual":
        differences.append("one order instead of ten")
    return [*differences, "corruptions are made here instead of read from the published files"]
