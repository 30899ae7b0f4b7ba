"""Records of any task: a row per image, with the columns that the header describes.

They are files of records like those of classification (`blemish.evaluation.records`): Parquet, sealed, with a typed
header. The header's task says what is kept of an image; what it means is known to those who made it and who score it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.frames import Columns, Tabular
from blemish.evaluation.info import RecordsHeader, TaskInfo
from blemish.evaluation.records import (
    Records,
    join,
    parquet_bytes,
    read_header,
    read_records,
    read_table,
    records_bytes,
)

_TYPES: dict[str, Any] = {"bool": np.bool_, "int32": np.int32, "float": np.float32, "double": np.float64}
"""What columns hold, by the names that headers use; ``list<…>`` of these holds a list for every image."""


@dataclass(frozen=True)
class Lists:
    """A list of numbers for each image: all of them in a row, and how many each has.

    >>> Lists(np.array([0.9, 0.5, 0.7]), np.array([2, 0, 1])).take(np.array([2, 0])).values
    array([0.7, 0.9, 0.5])
    """

    values: NDArray[Any]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Refuse counts that do not add up."""
        if int(self.counts.sum()) != len(self.values) or (self.counts < 0).any():
            raise InputError(f"{len(self.values)} values in lists of {int(self.counts.sum())} altogether")

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def owners(self) -> NDArray[np.int64]:
        """The row of the image that each value belongs to."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def take(self, rows: NDArray[Any]) -> Lists:
        """The lists of some images."""
        ends = np.cumsum(self.counts)
        starts, counts = (ends - self.counts)[rows], self.counts[rows]
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return Lists(self.values[np.repeat(starts, counts) + within], counts)


Column = NDArray[Any] | Lists


@dataclass(frozen=True, repr=False)
class Answers(Tabular):
    """What a model answered under one condition: the names of the images and, by name, a column for each thing kept."""

    header: RecordsHeader
    images: NDArray[np.str_]
    columns: Mapping[str, Column]

    def __post_init__(self) -> None:
        """Refuse columns that are not those of the header, or not of these images."""
        expected = self.task.columns
        if set(self.columns) != set(expected):
            raise InputError(f"columns {', '.join(self.columns)}; expected {', '.join(expected)}")
        for name, column in self.columns.items():
            if len(column) != len(self.images):
                raise InputError(f"{name}: {len(column)} entries for {len(self.images)} images; expected one each")

    def __len__(self) -> int:
        return len(self.images)

    @property
    def task(self) -> TaskInfo:
        """What is kept of an image."""
        if self.header.task is None:
            raise InputError(f"{self.header.condition}: records of no task; expected one in the header")
        return self.header.task

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def numbers(self, name: str) -> NDArray[Any]:
        """A column with one value for each image."""
        column = self.columns[name]
        if isinstance(column, Lists):
            raise InputError(f"{name}: lists; expected one value for each image")
        return column

    def lists(self, name: str) -> Lists:
        """A column with a list for each image."""
        column = self.columns[name]
        if not isinstance(column, Lists):
            raise InputError(f"{name}: single values; expected a list for each image")
        return column

    def caption(self) -> str:
        """The condition and the number of images."""
        return f"{self.header.condition}: {len(self)} images, {self.task.name}"

    def table(self) -> Columns:
        """A row for each image."""
        plain = {name: _plain(column) for name, column in self.columns.items()}
        return {"image": self.images.tolist(), **plain}

    def take(self, rows: NDArray[Any]) -> Answers:
        """Some of the images, by position."""
        columns = {
            name: column.take(rows) if isinstance(column, Lists) else column[rows]
            for name, column in self.columns.items()
        }
        return replace(self, images=self.images[rows], columns=columns)

    def in_order(self) -> Answers:
        """Sorted by the names of the images; two records of one image are refused."""
        order = np.argsort(self.images, kind="stable")
        names = self.images[order]
        if len(twice := names[1:][names[1:] == names[:-1]]):
            raise InputError(f"{self.header.condition}: image {twice[0]} has several records; expected one per image")
        return self if np.array_equal(order, np.arange(len(order))) else self.take(order)


def _plain(column: Column) -> list[Any]:
    if not isinstance(column, Lists):
        return list(column.tolist())
    return [part.tolist() for part in np.split(column.values, np.cumsum(column.counts)[:-1])]


def join_answers(parts: Sequence[Answers]) -> Answers:
    """Answers on further images, one after the other, under the first one's header."""
    if len(parts) == 1:
        return parts[0]
    columns: dict[str, Column] = {}
    for name in parts[0].columns:
        own = [part[name] for part in parts]
        if all(isinstance(column, Lists) for column in own):
            lists = [column for column in own if isinstance(column, Lists)]
            columns[name] = Lists(*(np.concatenate([getattr(each, f) for each in lists]) for f in ("values", "counts")))
        else:
            columns[name] = np.concatenate([column for column in own if not isinstance(column, Lists)])
    return Answers(parts[0].header, np.concatenate([part.images for part in parts]), columns)


def answers_bytes(answers: Answers) -> bytes:
    """The content of a Parquet file; equal answers give equal bytes."""
    import pyarrow as pa

    columns = {"image": pa.array(answers.images.tolist(), "string")}
    for name, kind in sorted(answers.task.columns.items()):  # as the header has them when it is read again
        dtype, column = _numpy_type(kind), answers[name]
        if isinstance(column, Lists):
            offsets = pa.array(np.concatenate([[0], np.cumsum(column.counts)]).astype(np.int32))
            columns[name] = pa.ListArray.from_arrays(offsets, pa.array(column.values.astype(dtype)))
        else:
            columns[name] = pa.array(column.astype(dtype))
    return parquet_bytes(pa.table(columns), answers.header)


def read_answers(path: str | os.PathLike[str]) -> Answers:
    """Answers as they were written; a damaged file is refused with its name."""
    header, table = read_table(path)
    where = os.fspath(path)
    if header.task is None:
        raise InputError(f"{where}: records of classification; expected those of another task")
    names = ["image", *header.task.columns]
    if missing := [name for name in names if name not in table]:
        raise InputError(f"{where}: records without {', '.join(missing)}; expected {', '.join(names)}")
    if not len(table["image"]):
        raise InputError(f"{where}: records of no images; expected at least one")
    images = np.asarray(table["image"].to_pylist(), dtype=np.str_)
    columns = {name: _column(f"{where}: {name}", table[name], kind) for name, kind in header.task.columns.items()}
    return Answers(header, images, columns)


def content_of(records: Records | Answers) -> bytes:
    """The content of a file of records, of any task."""
    return answers_bytes(records) if isinstance(records, Answers) else records_bytes(records)


def read_any(path: str | os.PathLike[str]) -> Records | Answers:
    """A file of records, of any task."""
    return read_records(path) if read_header(path).task is None else read_answers(path)


def join_any(parts: Sequence[Records | Answers]) -> Records | Answers:
    """Records on further images, one after the other; all of the same task."""
    answers = [part for part in parts if isinstance(part, Answers)]
    return join_answers(answers) if answers else join([part for part in parts if isinstance(part, Records)])


def _numpy_type(kind: str) -> Any:
    inner = kind.removeprefix("list<").removesuffix(">")
    if inner not in _TYPES:
        raise InputError(f"columns of {kind}; expected one of {', '.join(_TYPES)}, or lists of them")
    return _TYPES[inner]


def _column(where: str, values: Any, kind: str) -> Column:
    import pyarrow as pa

    is_list, dtype = kind.startswith("list<"), _numpy_type(kind)
    kept = values.type
    inner = kept.value_type if pa.types.is_list(kept) else kept
    if pa.types.is_list(kept) != is_list or inner != pa.from_numpy_dtype(dtype):
        raise InputError(f"{where} of type {kept} in records; expected {kind}")
    flat = values.flatten() if is_list else values
    if values.null_count or flat.null_count:
        raise InputError(f"{where} is empty in some records; expected one for every image")
    numbers = np.asarray(flat.to_numpy(zero_copy_only=False)).astype(dtype)
    if not is_list:
        return numbers
    return Lists(numbers, np.asarray(values.value_lengths().to_numpy()).astype(np.int64))
