"""Published numbers of models that were not measured here, to stand beside those that were."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from blemish.core.csv_files import read_csv
from blemish.core.errors import InputError
from blemish.core.reading import is_there
from blemish.corruptions.catalog import hint
from blemish.metrics.testbed import line_models

PUBLISHED = {
    "leaderboard": "Published: five ResNet-50 of the leaderboards of ImageNet-C and -P.",
    "testbed": "Published: the 200 models of the ImageNet testbed, against the published AlexNet.",
}
"""The tables that come with the library, and what is said of them."""

_NUMBERS = ("clean_error", "mce", "relative_mce", "mfr")


@dataclass(frozen=True)
class PublishedModel:
    """A model's numbers in percent, None where they are not known."""

    name: str
    clean_error: float | None = None
    mce: float | None = None
    relative_mce: float | None = None
    mfr: float | None = None

    def get(self, name: str) -> float | None:
        """One of its numbers, by the name of the metric."""
        value: float | None = getattr(self, name)
        return value


def published_models(name: str | os.PathLike[str]) -> tuple[PublishedModel, ...]:
    """A table that comes with the library (`PUBLISHED`), or a CSV file.

    The file has a column ``model`` and some of clean_error, mce, relative_mce and mfr, in percent.
    """
    text = os.fspath(name)
    if text in PUBLISHED:
        return _built_in(text)
    if not is_there(text):
        raise InputError(f"published numbers {text!r}; {hint(text, list(PUBLISHED))}, or a CSV file")
    header, *rows = read_csv(text) or [[]]
    known = ("model", *_NUMBERS)
    if "model" not in header or len(header) < 2 or (strange := [column for column in header if column not in known]):
        columns = ", ".join(strange if "model" in header and len(header) > 1 else header) or "nothing"
        raise InputError(f"{text}: columns {columns}; expected model and some of {', '.join(_NUMBERS)}")
    return tuple(_row(text, number, header, row) for number, row in enumerate(rows, start=2))


def _row(file: str, number: int, header: Sequence[str], row: Sequence[str]) -> PublishedModel:
    if len(row) != len(header):
        raise InputError(f"{file}, line {number}: {len(row)} cells; expected {len(header)}")
    cells = dict(zip(header, row, strict=True))
    if not (name := cells.pop("model").strip()):
        raise InputError(f"{file}, line {number}: a model without a name")
    return PublishedModel(name, **{key: _number(file, number, key, cell) for key, cell in cells.items()})


def _number(file: str, line: int, column: str, cell: str) -> float | None:
    if not cell.strip():
        return None
    try:
        value = float(cell)
    except ValueError:
        value = float("nan")
    if not 0 <= value < float("inf"):
        raise InputError(f"{file}, line {line}: {column} is {cell!r}; expected a number in percent, or nothing")
    return value


@cache
def _built_in(name: str) -> tuple[PublishedModel, ...]:
    if name == "testbed":
        return tuple(
            PublishedModel(model.name, round(100 * (1 - model.clean), 4), model.mce, model.relative_mce)
            for model in line_models()
        )
    path = resources.files("blemish.metrics") / "leaderboard.json"
    table: Mapping[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return tuple(PublishedModel(**dict(zip(table["columns"], row, strict=True))) for row in table["models"])
