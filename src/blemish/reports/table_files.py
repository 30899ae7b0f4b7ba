"""Scores and comparisons for other programs: JSON and CSV with all digits, one row per number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from blemish.core.csv_files import csv_text
from blemish.core.marks import MADE_WITH
from blemish.core.typed import as_json
from blemish.metrics.compare import Comparison
from blemish.reports.reading import Reading, differences
from blemish.reports.tables import FOOTNOTE

_MARK = "trained_on_note"


def scores_json(readings: Sequence[Reading]) -> str:
    """A list with an entry per model: its scores, what could not be computed, and its protocol.

    ``protocol_differences`` names the fields in which it was not measured like the first model that has something in
    common with it, with both values.
    """
    entries = []
    for reading, unlike in zip(readings, differences(readings), strict=True):
        run = reading.run
        entry = {"made_with": MADE_WITH, **reading.scores.as_dict(), "model": reading.label, "folder": str(run.folder)}
        entry |= {"protocol": as_json(run.info.protocol), "data": as_json(run.info.data)}
        entry["protocol_differences"] = unlike
        if any(row["trained_on"] for row in entry["rows"]):
            entry[_MARK] = FOOTNOTE
        entries.append(entry)
    return _json(entries)


def comparison_json(comparison: Comparison) -> str:
    """The whole comparison."""
    entry = {"made_with": MADE_WITH, **comparison.as_dict()}
    if any(any(row.trained_on) for row in comparison.rows):
        entry[_MARK] = FOOTNOTE
    return _json(entry)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def scores_csv(readings: Sequence[Reading]) -> str:
    """A row per number; ``trained_on`` is † where the model met a corruption that it was trained on.

    ``near_chance`` says so of models that are not better than chance on clean images. Published accuracies of people
    are rows of the scope ``level``; a model that never falls below them has no value there.
    """
    rows = (
        {
            "model": reading.label,
            "benchmark": reading.scores.benchmark,
            "metric": name,
            "scope": scope,
            "of": of,
            "value": value,
            "low": low,
            "high": high,
            "level": reading.scores.level,
            "unit": unit,
            "images": reading.scores.images,
            "trained_on": "†" if trained_on else "",
            "near_chance": "near chance" if reading.scores.near_chance else "",
        }
        for reading in readings
        for name, scope, of, value, low, high, unit, trained_on in _numbers(reading)
    )
    marked = any(row.trained_on for reading in readings for row in reading.scores.rows)
    return _csv(rows, marked=marked)


def _numbers(reading: Reading) -> Iterator[tuple[object, ...]]:
    for row in reading.scores.rows:
        number = row.estimate
        yield row.name, row.scope, row.of, number.value, number.low, number.high, row.unit, row.trained_on
    for stimulus in reading.scores.beside.stimuli if reading.scores.beside is not None else ():
        for item in stimulus.levels:
            of, people = f"{stimulus.corruption} {item.level.level}", item.people
            yield "people_accuracy", "level", of, people.value, people.low, people.high, "%", False
        if (fall := stimulus.fall) is not None:
            ends = (fall.severity, fall.low, fall.high)
            yield "below_people_from", "corruption", stimulus.corruption, *ends, "severity", False


def comparison_csv(comparison: Comparison) -> str:
    """A row per difference."""
    rows = (
        {
            "metric": row.name,
            "scope": row.scope,
            "of": row.of,
            comparison.first: row.first,
            comparison.second if comparison.second != comparison.first else f"{comparison.second} (second)": row.second,
            "difference": row.difference.value,
            "low": row.difference.low,
            "high": row.difference.high,
            "level": comparison.level,
            "unit": row.unit,
            "p_value": row.p_value,
            "test": row.test,
            "trained_on": "†" if any(row.trained_on) else "",
            "near_chance": " and ".join(
                name for name, near in zip(("first", "second"), comparison.near_chance, strict=True) if near
            ),
        }
        for row in comparison.rows
    )
    return _csv(rows, marked=any(any(row.trained_on) for row in comparison.rows))


def _csv(rows: Iterable[Mapping[str, object]], *, marked: bool) -> str:
    """Numbers with all their digits; a footnote, where one is due, as a last line that starts with #."""
    lines: list[Iterable[object]] = []
    for row in rows:
        lines += [row.values()] if lines else [row, row.values()]
    return csv_text(lines) + (f"# {FOOTNOTE}\n" if marked else "")
