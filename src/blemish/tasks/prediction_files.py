"""Files of predictions, a row for each: CSV, JSON lines or Parquet, as columns of an Arrow table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.csv_files import plain_cell
from blemish.core.errors import InputError, brief, refused
from blemish.core.reading import open_regular

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
"""How the names of files of predictions end."""

_LARGEST_PIECE = 2**31 - 1
_GUARDED = (".csv", ".tsv")
_TRUE = {"true", "1", "1.0", "yes"}
_FALSE = {"false", "0", "0.0", "no"}


def read_sheet(path: str | os.PathLike[str]) -> Sheet:
    """The rows of a file of predictions; its suffix says how it is written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = os.fspath(path)
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{name}: expected a file of predictions, {', '.join(SUFFIXES)}")
    readers: dict[str, Callable[[Any], Any]] = {
        ".csv": lambda file: _csv(file, ","),
        ".tsv": lambda file: _csv(file, "\t"),
        ".jsonl": _json_lines,
        ".ndjson": _json_lines,
        ".parquet": lambda file: pq.ParquetFile(file).read(use_threads=False),
    }
    unreadable = (OSError, pa.ArrowException, ValueError, KeyError)
    with open_regular(name) as file, refused(f"{name}: not readable as {suffix[1:]}", *unreadable):
        table = readers[suffix](file)
    if not len(table):
        raise InputError(f"{name}: no predictions in it; expected a row for each image and condition")
    held = table.column_names
    if twice := [column for column in held if held.count(column) > 1]:
        raise InputError(f"{name}: several columns {twice[0]!r}; expected one of each name")
    return Sheet(name, table)


def _csv(file: Any, separator: str) -> Any:
    """All columns as texts: what is a number is decided where it is one, and 007.jpg is a name."""
    from pyarrow import csv

    first = csv.open_csv(file, parse_options=csv.ParseOptions(delimiter=separator)).schema.names
    file.seek(0)
    convert = csv.ConvertOptions(column_types=dict.fromkeys(first, "string"), strings_can_be_null=False)
    return csv.read_csv(
        file,
        read_options=csv.ReadOptions(use_threads=False),
        parse_options=csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=convert,
    )


def _json_lines(file: Any) -> Any:
    import pyarrow as pa
    from pyarrow import json

    # In one piece: of several, each has to have the types of the first, in which boxes may be whole numbers or missing.
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    options = json.ReadOptions(use_threads=False, block_size=min(max(size, 1), _LARGEST_PIECE))
    table = json.read_json(file, read_options=options)
    dates = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
    if not dates:
        return table
    file.seek(0)  # texts like 2020-01-31 are taken for times, unless they are said to be texts
    texts = pa.schema([(name, pa.string()) for name in dates])
    return json.read_json(file, read_options=options, parse_options=json.ParseOptions(explicit_schema=texts))


@dataclass(frozen=True)
class Sheet:
    """The rows of a file, by column; every answer about them names the file and the row."""

    name: str
    table: Any

    def __len__(self) -> int:
        return len(self.table)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.table.column_names)

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    def row(self, index: int) -> str:
        """A row as people count them: the first one below the heading is row 1."""
        return f"{self.name}: row {index + 1}"

    def texts(self, column: str) -> tuple[list[str], NDArray[np.int64]]:
        """The different texts of a column, and which of them each row holds; numbers are texts too."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self._full(column)
        if pa.types.is_list(values.type) or pa.types.is_struct(values.type):
            raise InputError(f"{self.name}: {column} of type {values.type}; expected texts")
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        with refused(f"{self.name}: {column} of type {values.type}; expected texts", pa.ArrowException):
            plain = values.cast(pa.string())
        coded = pc.dictionary_encode(plain).combine_chunks()
        coded = coded.chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
        texts, codes = coded.dictionary.to_pylist(), np.asarray(coded.indices).astype(np.int64)
        if self.name.lower().endswith(_GUARDED):
            texts = [plain_cell(text) for text in texts]
        if "" in texts:
            raise InputError(f"{self.row(int(np.argmax(codes == texts.index(''))))}: {column} is empty")
        return texts, codes

    def numbers(self, column: str) -> NDArray[np.float64]:
        """A column of finite numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = self._full(column)
        if pa.types.is_string(values.type):
            values = pc.utf8_trim_whitespace(values)
        try:
            numbers = np.asarray(values.cast(pa.float64()))
        except (pa.ArrowException, ValueError):
            texts = values.to_pylist()
            bad = next((i for i, text in enumerate(texts) if not _is_number(text)), 0)
            raise InputError(f"{self.row(bad)}: {column} is {brief(texts[bad])}; expected a number") from None
        if len(strange := np.flatnonzero(~np.isfinite(numbers))):
            raise InputError(
                f"{self.row(int(strange[0]))}: {column} is {numbers[strange[0]]}; expected a finite number"
            )
        return numbers

    def outcomes(self, column: str) -> NDArray[np.bool_]:
        """A column of right or wrong: true and false, or 1 and 0."""
        texts, codes = self.texts(column)
        known = [text.lower() in _TRUE for text in texts]
        for number, text in enumerate(texts):
            if text.lower() not in _TRUE | _FALSE:
                first = int(np.argmax(codes == number))
                raise InputError(f"{self.row(first)}: {column} is {brief(text)}; expected true or false, 1 or 0")
        return np.array(known, dtype=np.bool_)[codes]

    def values(self, column: str) -> list[Any]:
        """A column as Python holds it, such as lists of boxes."""
        return list(self._full(column).to_pylist())

    def lists(self, columns: Sequence[str]) -> tuple[dict[str, list[list[Any]]], NDArray[np.int64]]:
        """Columns of lists, and how long those of each row are: as long as each other."""
        lists = {name: self.values(name) for name in columns}
        for name, values in lists.items():
            if (
                row := next((row for row, value in enumerate(values) if not isinstance(value, list)), None)
            ) is not None:
                raise InputError(f"{self.row(row)}: {name} is {brief(values[row])}; expected a list (JSON or Parquet)")
        lengths = np.array([[len(value) for value in values] for values in lists.values()], dtype=np.int64)
        if len(unequal := np.flatnonzero((lengths != lengths[0]).any(axis=0))):
            shown = ", ".join(f"{length} {name}" for name, length in zip(lists, lengths[:, unequal[0]], strict=True))
            raise InputError(f"{self.row(int(unequal[0]))}: {shown}; expected as many of each")
        return lists, lengths[0]

    def flat(self, column: str, values: Sequence[list[Any]]) -> NDArray[np.float64]:
        """All numbers of lists, which are of a column, one after the other."""
        try:
            numbers = np.array([number for value in values for number in value], dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"{self.name}: {column} with something that is no number; expected lists of numbers"
            ) from None
        if not np.isfinite(numbers).all():
            raise InputError(f"{self.name}: {column} that are not finite; expected finite numbers")
        return numbers

    def _full(self, column: str) -> Any:
        """A column without empty places."""
        values = self.table[column]
        if values.null_count:
            first = values.to_pylist().index(None)
            raise InputError(f"{self.row(first)}: {column} is empty; expected something in every row")
        return values


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return "_" not in str(value)
