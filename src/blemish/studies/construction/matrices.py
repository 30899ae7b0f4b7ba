"""Named square matrices of overlapping scores, in which a score may be undefined for a stated reason."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.csv_files import csv_text, parse_csv
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.reading import parse_json, read_text
from blemish.studies.construction.tables import check_names, near, parse_number

UNDEFINED = "undefined"
"""How an undefined score is written in a file; a colon and the reason may follow."""

_TOLERANCE = 1e-9


def pair(first: str, second: str) -> tuple[str, str]:
    """Two names as a key that does not depend on their order.

    >>> pair("snow", "fog")
    ('fog', 'snow')
    """
    return (first, second) if first <= second else (second, first)


@dataclass(frozen=True)
class OverlapMatrix:
    """Overlapping scores of all pairs of ``names``: symmetric, not negative, 1 on the diagonal.

    Undefined scores are NaN in ``scores``, and ``undefined`` gives the reason for each such pair.

    >>> matrix = OverlapMatrix(("fog", "snow"), np.array([[1, 0.2], [0.2, 1]]))
    >>> matrix.score("snow", "fog")
    0.2
    """

    names: tuple[str, ...]
    scores: NDArray[np.float64]
    undefined: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is not such a matrix."""
        check_names(self.names, "corruption")
        scores = np.array(self.scores, dtype=np.float64)
        count = len(self.names)
        if scores.shape != (count, count):
            shape = " × ".join(str(side) for side in scores.shape)
            raise InputError(f"a matrix of {shape} for {count} names; expected it square, {count} × {count}")
        reasons = {pair(*key): reason for key, reason in self.undefined.items()}
        for name in sorted({name for key in reasons for name in key} - set(self.names)):
            raise InputError(f"an undefined score of {name!r}; {near(name, self.names)}")
        for first, second in _upper(self.names):
            self._check_pair(scores, first, second, reasons)
        scores = (scores + scores.T) / 2
        scores.setflags(write=False)
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "undefined", reasons)

    def _check_pair(self, scores: NDArray[np.float64], i: int, j: int, reasons: Mapping[tuple[str, str], str]) -> None:
        one, other = float(scores[i, j]), float(scores[j, i])
        where = f"the score of {self.names[i]} and {self.names[j]}"
        if pair(self.names[i], self.names[j]) in reasons:
            if not (np.isnan(one) and np.isnan(other)):
                raise InputError(f"{where} is called undefined, but {one:g} is given; expected one or the other")
            return
        if np.isnan(one) or np.isnan(other):
            raise InputError(f"{where} is NaN; expected a number, or the word {UNDEFINED}")
        if abs(one - other) > _TOLERANCE:
            raise InputError(f"not symmetric: {where} is {one:g} one way and {other:g} the other")
        if one < 0 or np.isinf(one):
            raise InputError(f"{where} is {one:g}; expected a number that is not negative")
        if i == j and abs(one - 1) > _TOLERANCE:
            raise InputError(f"{where} is {one:g}; expected 1, since a corruption overlaps itself completely")

    def index(self, name: str) -> int:
        """The number of a corruption's row and column."""
        if name not in self.names:
            raise InputError(f"no corruption {name!r} in the matrix; {near(name, self.names)}")
        return self.names.index(name)

    def score(self, first: str, second: str) -> float:
        """The overlapping score of two corruptions; an error with the reason where it is undefined."""
        value = float(self.scores[self.index(first), self.index(second)])
        if np.isnan(value):
            raise InputError(f"the score of {first} and {second} is undefined: {self.undefined[pair(first, second)]}")
        return value

    def only(self, names: Sequence[str]) -> OverlapMatrix:
        """The part of the matrix with these corruptions, in the order given."""
        rows = [self.index(name) for name in names]
        kept = {key: reason for key, reason in self.undefined.items() if set(key) <= set(names)}
        return OverlapMatrix(tuple(names), self.scores[np.ix_(rows, rows)], kept)

    def pairs(self) -> list[tuple[str, str]]:
        """All pairs of different corruptions, in the order of the matrix."""
        return [(self.names[i], self.names[j]) for i, j in _upper(self.names) if i < j]

    def defined(self) -> OverlapMatrix:
        """The part without undefined scores: as long as there are some, the corruption with the most is left out."""
        names = list(self.names)
        while True:
            counts = [sum(name in key for key in self.undefined if set(key) <= set(names)) for name in names]
            if not any(counts):
                return self.only(names)
            names.pop(max(range(len(names)), key=lambda i: (counts[i], -i)))
            if not names:
                raise InputError("every corruption has an undefined score; expected some that are defined")


def _upper(names: Sequence[str]) -> Iterator[tuple[int, int]]:
    return ((i, j) for i in range(len(names)) for j in range(i, len(names)))


def write_matrix(matrix: OverlapMatrix, path: Path) -> None:
    """Write a matrix as .json or .csv, whichever the file name says; `read_matrix` reads both to the last digit."""
    content = _as_json(matrix) if path.suffix.lower() == ".json" else _as_csv(matrix)
    if path.suffix.lower() not in (".json", ".csv"):
        raise InputError(f"{path}: expected a name that ends in .csv or .json")
    write_bytes(path, content.encode("utf-8", "backslashreplace"))


def _cell(matrix: OverlapMatrix, i: int, j: int) -> str:
    reason = matrix.undefined.get(pair(matrix.names[i], matrix.names[j]))
    return repr(float(matrix.scores[i, j])) if reason is None else f"{UNDEFINED}: {reason}"


def _as_csv(matrix: OverlapMatrix) -> str:
    columns = range(len(matrix.names))
    rows = [[name, *(_cell(matrix, i, j) for j in columns)] for i, name in enumerate(matrix.names)]
    return csv_text([["corruption", *matrix.names], *rows])


def _as_json(matrix: OverlapMatrix) -> str:
    scores = [[None if np.isnan(value) else float(value) for value in row] for row in matrix.scores]
    reasons = [{"pair": list(key), "reason": reason} for key, reason in matrix.undefined.items()]
    content = {"corruptions": list(matrix.names), "scores": scores, "undefined": reasons}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def read_matrix(path: Path) -> OverlapMatrix:
    """A matrix from a .csv file (names in the first row and column) or a .json file as `write_matrix` makes them."""
    text = read_text(path)
    try:
        return _from_json(text) if path.suffix.lower() == ".json" else _from_csv(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _from_csv(text: str) -> OverlapMatrix:
    lines = parse_csv(text)
    if not lines or len(lines[0]) < 2:
        raise InputError("expected a header with the names of the corruptions, and a row for each below it")
    names = [name.strip() for name in lines[0][1:]]
    check_names(names, "corruption")
    rows = [line[0].strip() for line in lines[1:]]
    if len(rows) != len(names):
        raise InputError(f"{len(rows)} rows for {len(names)} columns; expected a square matrix")
    if rows != names:
        odd = next(i for i in range(len(names)) if rows[i] != names[i])
        raise InputError(
            f"row {odd + 1} is named {rows[odd]!r} and column {odd + 1} {names[odd]!r}; expected equal names"
        )
    scores = np.full((len(names), len(names)), np.nan)
    reasons: dict[tuple[str, str], str] = {}
    for i, line in enumerate(lines[1:]):
        if len(line) != len(names) + 1:
            raise InputError(f"row {rows[i]} has {len(line) - 1} scores; expected {len(names)}")
        for j, cell in enumerate(line[1:]):
            word, _, reason = cell.strip().partition(":")
            if word.lower() == UNDEFINED:
                reasons[pair(names[i], names[j])] = reason.strip() or "not given"
            else:
                scores[i, j] = parse_number(cell, f"the score of {names[i]} and {names[j]}")
    return OverlapMatrix(tuple(names), scores, reasons)


def _from_json(text: str) -> OverlapMatrix:
    try:
        content: Any = parse_json(text)
        names = [str(name) for name in content["corruptions"]]
        rows = [[np.nan if value is None else float(value) for value in row] for row in content["scores"]]
        entries = [(entry["pair"], str(entry["reason"])) for entry in content.get("undefined", [])]
        reasons = {(str(first), str(second)): reason for (first, second), reason in entries}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"expected JSON with corruptions, scores (a list of rows) and undefined (pair and reason); found {error!r}"
        ) from error
    if any(len(row) != len(rows) for row in rows):
        raise InputError(f"{len(rows)} rows of {sorted({len(row) for row in rows})} scores; expected a square matrix")
    return OverlapMatrix(tuple(names), np.array(rows, dtype=np.float64).reshape(len(rows), len(rows)), reasons)
