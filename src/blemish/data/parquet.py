"""Labelled images out of Parquet files, read row group by row group."""

from __future__ import annotations

import contextlib
import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from blemish.core.errors import InputError, refused
from blemish.core.memory import available_memory, check_fits
from blemish.core.reading import is_folder, open_regular
from blemish.data.folders import ClassMapping
from blemish.data.image_files import PARQUET_SUFFIX, ImageFile, LocalFile, check_shards, each_file, local_files
from blemish.data.pictures import decode_picture
from blemish.data.source import Source
from blemish.data.tables import Columns, check_labels, choose_columns, encoded_picture, table_labels

# What pyarrow raises for files that are damaged in one way or another.
DAMAGE = (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError)

# One column is read at a time, so that threads of pyarrow's would gain nothing; beside torch they end many a program
# with an abort when it exits.

# Row groups stay in memory up to this share of what is free: threads read a few of them at a time.
_SHARE = 4


def parquet_source(
    path: str | os.PathLike[str], *, columns: Sequence[str] | None = None, mapping: ClassMapping | None = None
) -> Source:
    """The images of a Parquet file, of all in a folder, or of a pattern such as ``val-{00..13}.parquet``.

    An image's name and id are its place among all rows, as those of the same rows in a Hugging Face dataset. See
    `choose_columns` for the columns and `table_labels` for what labels mean.
    """
    files = local_files(path, PARQUET_SUFFIX)
    if is_folder(path):
        check_shards(os.fspath(path), [file.name for file in files])
    local = [LocalFile(file) for file in files]
    return table_files_source(Path(path).stem or str(path), local, columns=columns, mapping=mapping)


def table_files_source(
    name: str,
    files: Sequence[ImageFile],
    *,
    columns: Sequence[str] | None = None,
    mapping: ClassMapping | None = None,
) -> Source:
    """The images of Parquet files, wherever they lie."""
    tables = each_file(lambda file: _opened(file, columns), files)
    first = tables[0]
    for table in tables[1:]:
        if table.columns != first.columns or table.kind != first.kind:
            raise InputError(
                f"{table.source.name}: other columns or classes than in {first.source.name}; "
                "expected files of one table"
            )
    labels = pa.chunked_array([chunk for table in tables for chunk in table.labels.chunks], first.kind)
    numbered = table_labels(name, labels, first.columns.classes, mapping)
    starts = [0, *accumulate(len(table.labels) for table in tables)]
    groups = _Groups(available_memory() // _SHARE)

    def read(i: int) -> Image.Image:
        number = bisect_right(starts, i) - 1
        table, row = tables[number], i - starts[number]
        group = bisect_right(table.groups, row) - 1
        value = groups.column(table, group)[row - table.groups[group]].as_py()
        where = f"row {row} of {table.source.name}"
        content, _ = encoded_picture(value, where)
        if content is None:
            raise InputError(f"{where}: no picture in it; expected its bytes, not its path alone")
        return decode_picture(content, where).convert("RGB")

    count = len(labels)
    return Source(
        name=name,
        names=tuple(map(str, range(count))),
        ids=np.arange(count, dtype=np.int64),
        labels=numbered.numbers,
        read=read,
        classes=numbered.classes,
        labelling=numbered.labelling,
        stamp=lambda i: f"{tables[bisect_right(starts, i) - 1].source.stamp}{i}|{first.columns.image}",
    )


@dataclass(frozen=True, eq=False)
class _Table:
    """A file: its columns, all of its labels, and the rows at which its groups begin."""

    source: ImageFile
    columns: Columns
    kind: pa.DataType
    labels: pa.ChunkedArray
    groups: tuple[int, ...]


@contextlib.contextmanager
def _file(source: ImageFile) -> Iterator[tuple[Any, Path]]:
    with source.held() as path, refused(f"{path}: not a readable Parquet file", *DAMAGE), open_regular(path) as stream:
        yield pq.ParquetFile(stream), path


def _opened(source: ImageFile, columns: Sequence[str] | None) -> _Table:
    with _file(source) as (file, path):
        chosen = choose_columns(str(path), file.schema_arrow, columns)
        counts = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        labels = file.read(columns=[chosen.label], use_threads=False).column(0)
        if len(labels) != sum(counts):
            raise InputError(f"{path}: {len(labels)} labels for {sum(counts)} rows; expected one in each row")
        check_labels(str(path), labels, chosen.classes)
        return _Table(source, chosen, labels.type, labels, (0, *accumulate(counts[:-1])))


class _Groups:
    """The images of the row groups that were read last, as many as memory may hold; each is read by one thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._held: OrderedDict[tuple[int, int], Future[pa.ChunkedArray]] = OrderedDict()

    def column(self, table: _Table, group: int) -> pa.ChunkedArray:
        key = (id(table), group)
        with self._lock:
            future = self._held.get(key)
            ours = future is None
            if future is None:
                future = self._held[key] = Future()
            self._held.move_to_end(key)
        if ours:
            try:
                future.set_result(_read_group(table, group))
            except BaseException as error:
                future.set_exception(error)
            self._tidy()
        return future.result()

    def _tidy(self) -> None:
        with self._lock:
            for key in [key for key, future in self._held.items() if future.done() and future.exception() is not None]:
                del self._held[key]  # the next one may try again
            finished = [(key, future.result().nbytes) for key, future in self._held.items() if future.done()]
            total = sum(size for _, size in finished)
            for key, size in finished[:-1]:
                if total <= self._most:
                    break
                del self._held[key]
                total -= size


def _read_group(table: _Table, group: int) -> pa.ChunkedArray:
    with _file(table.source) as (file, path):
        image = table.columns.image
        wanted = f"{image}.bytes" if pa.types.is_struct(file.schema_arrow.field(image).type) else image
        check_fits(f"row group {group} of {path}", _claimed(file.metadata.row_group(group), wanted))
        return file.read_row_group(group, columns=[wanted], use_threads=False).column(0)


def _claimed(group: Any, column: str) -> int:
    chunks = [group.column(number) for number in range(group.num_columns)]
    return sum(int(chunk.total_uncompressed_size) for chunk in chunks if chunk.path_in_schema == column)
