"""Accuracy tables: models in rows, settings (clean images, corruptions, other sets) in columns, always as fractions."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blemish.core.csv_files import csv_text, read_csv
from blemish.core.errors import InputError
from blemish.core.files import write_bytes

CLEAN = "clean"
"""The column of the accuracies on uncorrupted images."""

STANDARD = "standard"
"""The row of the model that was trained without corruptions."""

UNITS = {"fraction": 1.0, "percent": 100.0}
"""What a written accuracy of one hundred percent looks like."""


def near(name: str, known: Sequence[str]) -> str:
    """The known names nearest to one that is not known, or the first ones.

    >>> near("fogg", ["fog", "snow"])
    'did you mean fog?'
    """
    matches = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if matches:
        return f"did you mean {', '.join(matches)}?"
    more = f", … ({len(known)} in all)" if len(known) > 6 else ""
    return f"known: {', '.join(known[:6])}{more}"


def check_names(names: Sequence[str], what: str) -> None:
    """Refuse empty and doubled names."""
    if not names:
        raise InputError(f"no {what}s; expected at least one")
    if any(not name.strip() for name in names):
        raise InputError(f"a {what} without a name (number {[bool(n.strip()) for n in names].index(False) + 1})")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"{what} {', '.join(twice)} given twice; expected every name once")


@dataclass(frozen=True)
class AccuracyTable:
    """Accuracies in 0 … 1 of ``models`` (rows) under ``settings`` (columns).

    >>> table = AccuracyTable(("standard",), ("clean", "fog"), np.array([[0.8, 0.6]]))
    >>> table.accuracy("standard", "fog")
    0.6
    """

    models: tuple[str, ...]
    settings: tuple[str, ...]
    values: NDArray[np.float64]

    def __post_init__(self) -> None:
        """Refuse what is not a complete table of fractions."""
        check_names(self.models, "model")
        check_names(self.settings, "column")
        values = np.array(self.values, dtype=np.float64)
        if values.shape != (len(self.models), len(self.settings)):
            raise InputError(
                f"accuracies of shape {values.shape} for {len(self.models)} models and {len(self.settings)} columns"
            )
        bad = ~((values >= 0) & (values <= 1))  # true for NaN as well
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise InputError(
                f"accuracy {values[row, column]:g} of model {self.models[row]} under {self.settings[column]}; "
                "expected a fraction from 0 to 1"
            )
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @classmethod
    def of(cls, rows: Mapping[str, Mapping[str, float]]) -> AccuracyTable:
        """A table from one mapping of column to fraction for each model.

        >>> AccuracyTable.of({"a": {"clean": 0.5}}).settings
        ('clean',)
        """
        settings = tuple(next(iter(rows.values()), {}))
        for model, row in rows.items():
            if set(row) != set(settings):
                odd = sorted(set(row) ^ set(settings))
                raise InputError(
                    f"model {model} and the first model differ in {', '.join(odd)}; expected equal columns"
                )
        return cls(tuple(rows), settings, np.array([[row[s] for s in settings] for row in rows.values()]))

    def row(self, model: str) -> int:
        """The number of a model's row."""
        return _index(self.models, model, "model")

    def column(self, setting: str) -> int:
        """The number of a column."""
        return _index(self.settings, setting, "column")

    def accuracy(self, model: str, setting: str) -> float:
        """One accuracy."""
        return float(self.values[self.row(model), self.column(setting)])

    def columns(self, settings: Sequence[str]) -> NDArray[np.float64]:
        """The accuracies of all models under some settings, in the order given."""
        return self.values[:, [self.column(setting) for setting in settings]]

    def only(self, *, models: Sequence[str] | None = None, settings: Sequence[str] | None = None) -> AccuracyTable:
        """The part of the table with these rows and columns, in the order given."""
        models = self.models if models is None else tuple(models)
        settings = self.settings if settings is None else tuple(settings)
        rows = [self.row(model) for model in models]
        return AccuracyTable(tuple(models), tuple(settings), self.columns(settings)[rows])


def _index(names: tuple[str, ...], name: str, what: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        raise InputError(f"no {what} {name!r} in the table; {near(name, names)}") from None


def parse_number(text: str, where: str) -> float:
    """A finite number, or an error that names its place."""
    try:
        value = float(text)
    except ValueError:
        shown = "an empty cell" if not text.strip() else repr(text)
        raise InputError(f"{where}: {shown}; expected a number") from None
    if not math.isfinite(value):
        raise InputError(f"{where}: {text.strip()}; expected a finite number")
    return value


def read_columns(path: Path) -> list[str]:
    """The names of a table's columns, without that of the models."""
    header, _ = _rows(path)
    return header[1:]


def read_numbers(
    path: Path, *, columns: Sequence[str] | None = None, complete_only: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...], NDArray[np.float64]]:
    """The models, the columns and the numbers of a CSV file: a header, then one row per model with its name first.

    ``columns`` limits what is read, and ``complete_only`` leaves out models with an empty cell there instead of
    refusing them.
    """
    header, rows = _rows(path)
    settings = header[1:]
    check_names(settings, f"{path}: column")
    wanted = settings if columns is None else list(columns)
    missing = [name for name in wanted if name not in settings]
    if missing:
        raise InputError(f"{path}: no column {missing[0]!r}; {near(missing[0], settings)}")
    cells = [1 + settings.index(name) for name in wanted]
    chosen = [row for row in rows if not (complete_only and any(not row[cell].strip() for cell in cells))]
    if not chosen:
        raise InputError(f"{path}: no model has all of the {len(wanted)} columns; expected at least one")
    check_names([row[0] for row in chosen], f"{path}: model")
    values = np.array(
        [
            [parse_number(row[cell], f"{path}: model {row[0]}, column {header[cell]}") for cell in cells]
            for row in chosen
        ]
    )
    return tuple(row[0] for row in chosen), tuple(wanted), values


def read_table(
    path: Path, *, unit: str = "fraction", columns: Sequence[str] | None = None, complete_only: bool = False
) -> AccuracyTable:
    """An accuracy table from a CSV file, as `read_numbers` reads it.

    ``unit`` says whether the file holds fractions (0.76) or percent (76).
    """
    return as_accuracies(path, *read_numbers(path, columns=columns, complete_only=complete_only), unit=unit)


def as_accuracies(
    path: Path, models: Sequence[str], columns: Sequence[str], values: NDArray[np.float64], *, unit: str = "fraction"
) -> AccuracyTable:
    """Numbers that were read from a file as accuracies."""
    if unit not in UNITS:
        raise InputError(f"unknown unit {unit!r}; expected {' or '.join(UNITS)}")
    _check_unit(values, unit, path)
    return AccuracyTable(tuple(models), tuple(columns), values / UNITS[unit])


def _rows(path: Path) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a CSV file, all of the same length."""
    lines = [[cell.strip() for cell in line] for line in read_csv(path)]
    if len(lines) < 2 or len(lines[0]) < 2:
        raise InputError(f"{path}: expected a header with column names, and one row for each model below it")
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(lines[0]):
            raise InputError(f"{path}: row {number} has {len(line)} cells; expected {len(lines[0])} as in the header")
    return lines[0], lines[1:]


def _check_unit(values: NDArray[np.float64], unit: str, path: Path) -> None:
    largest = float(values.max())
    if unit == "fraction" and largest > 1:
        raise InputError(f"{path}: found {largest:g}; expected fractions from 0 to 1, or the unit percent")
    if unit == "percent" and 0 < largest <= 1:
        raise InputError(f"{path}: no value exceeds {largest:g}; these look like fractions, not percent")


def write_table(table: AccuracyTable, path: Path) -> None:
    """Write a table as a CSV file of fractions that `read_table` reads again, to the last digit."""
    rows = [[model, *row.tolist()] for model, row in zip(table.models, table.values, strict=True)]
    write_bytes(path, csv_text([["model", *table.settings], *rows]).encode("utf-8", "backslashreplace"))
