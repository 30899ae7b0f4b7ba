"""How it was measured: the protocol of every run side by side, and what a reader has to be warned of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blemish.core.printable import first_few
from blemish.core.typed import as_json
from blemish.evaluation.chance import LOOK_AT
from blemish.evaluation.runs import NOT_HERE
from blemish.reports.reading import Reading, differences, firsts

_PARTS = {
    "benchmark": "Benchmark",
    "protocol": "Protocol",
    "task": "Task",
    "data": "Images",
    "model": "Model",
    "made_with": "Made with",
}
_OWN = "model"
"""Runs are of different models as a rule, so that their entries are not marked as differences."""

_SILENT = ("benchmark.conditions",)
_OF_CLASSES = ("data.classes", "protocol.labels")
"""What is said of images with a label, and of no other task."""


def _flat(value: Any, name: str) -> dict[str, str]:
    """Entries as dotted names and readable texts."""
    if name == "protocol.corruptions" and isinstance(value, Mapping):
        return {name: _versions(value)}
    if name == "task.columns" and isinstance(value, Mapping):
        return {name: _text(list(value))}
    if isinstance(value, Mapping):
        return {key: text for field, item in value.items() for key, text in _flat(item, f"{name}.{field}").items()}
    return {name: _text(value)}


def _text(value: Any) -> str:
    if value is None or value in ([], {}, ""):
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value)
    return json.dumps(value, ensure_ascii=False)


def _versions(versions: Mapping[str, Any]) -> str:
    """The versions of many corruptions in few words.

    >>> _versions({"fog": 1, "snow": 2, "rain": 1})
    'version 1: fog, rain; version 2: snow'
    """
    numbers: dict[str, list[str]] = {}
    for name, version in versions.items():
        numbers.setdefault(_text(version), []).append(name)
    if len(numbers) == 1:
        return f"all {len(versions)} of version {next(iter(numbers))}"
    return "; ".join(f"version {version}: {', '.join(names)}" for version, names in sorted(numbers.items())) or "–"


def _entries(reading: Reading) -> dict[str, str]:
    run = reading.run
    entries = as_json(run.info)
    texts = {"benchmark.number of conditions": str(len(run.info.benchmark.conditions))}
    for part in _PARTS:
        if entries.get(part) is not None:
            texts |= _flat(entries[part], part)
    # The one that its numbers are relative to, which need not be the benchmark's own.
    texts["benchmark.baseline"] = reading.scores.baseline or "none"
    if run.info.protocol.pixels == NOT_HERE:
        texts["protocol.seed"] = _text(None)  # nobody here drew anything
    if run.info.task is not None:
        texts = {name: text for name, text in texts.items() if name not in _OF_CLASSES}
    texts["benchmark.metric"] = reading.scores.metric  # of a part, the part's: it is not the benchmark's own number
    return {name: text for name, text in texts.items() if name not in _SILENT}


@dataclass(frozen=True)
class ProtocolRow:
    """A field of the protocol with its value in every run."""

    name: str
    values: list[str]
    differs: bool


def protocol_rows(readings: Sequence[Reading]) -> dict[str, list[ProtocolRow]]:
    """The fields of every part of the protocol."""
    entries = [_entries(reading) for reading in readings]
    fields = dict.fromkeys(field for entry in entries for field in entry)
    rows: dict[str, list[ProtocolRow]] = {title: [] for title in _PARTS.values()}
    for field in fields:
        part, _, name = field.partition(".")
        values = [entry.get(field, "–") for entry in entries]
        differs = part != _OWN and len(set(values)) > 1
        rows[_PARTS[part]].append(ProtocolRow(name.replace("_", " ").replace(".", " · "), values, differs))
    return {title: own for title, own in rows.items() if own}


def run_warnings(readings: Sequence[Reading]) -> list[str]:
    """What a reader has to know before trusting or comparing the numbers."""
    warnings = []
    for first, other, reasons in zip(firsts(readings), readings, differences(readings), strict=True):
        if reasons:
            warnings.append(
                f"{first.name} and {other.name} were not measured in the same way, so that their numbers are not "
                f"comparable: {'; '.join(reasons)}."
            )
    own: dict[str, list[str]] = {}
    for reading in readings:
        for text in _own_warnings(reading):
            own.setdefault(text, []).append(reading.name)
    everyone = len(readings) > 1
    for text, names in own.items():
        warnings.append(f"{'All models' if everyone and len(names) == len(readings) else ', '.join(names)}: {text}")
    return warnings


def _own_warnings(reading: Reading) -> list[str]:
    run, warnings = reading.run, []
    if reading.scores.near_chance:
        warnings.append(f"{reading.scores.chance}. Its numbers mean nothing as long as this is so. {LOOK_AT}.")
    card = run.info.model.card
    if card is not None and card.remark is not None:
        warnings.append(f"{card.remark}.")
    if reading.seen:
        warnings.append(
            f"trained on {', '.join(reading.seen)}. Numbers with them are marked †; they do not measure robustness."
        )
    open_ones = [str(condition) for condition in run.conditions if not run.finished(condition)]
    if open_ones:
        names = first_few(open_ones, 6)
        warnings.append(f"{len(open_ones)} of {len(run.conditions)} conditions are not measured yet: {names}.")
    kind = run.info.protocol.frost
    if kind not in (None, "reference"):
        warnings.append(f"frost uses {kind} photographs and cannot be compared with published numbers of frost.")
    return warnings
