"""Tables of pictures as Arrow holds them: some columns changed, row group by row group, and written as Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from blemish.core.errors import InputError
from blemish.core.reading import is_file, read_bytes
from blemish.core.rng import hash_id
from blemish.data.tables import encoded_picture
from blemish.export.containers.base import Change


def changed_tables(
    tables: Iterable[pa.Table], columns: Sequence[str], first: int, name: str, change: Change
) -> Iterator[pa.Table]:
    """Tables with the pictures of these columns changed; ``first`` is the number of their first row.

    The id of a picture in the first column is the number of its row, as when the same table is read to be corrupted
    while a model is measured. Further columns, and further pictures in a list, have ids of their own.
    """
    row = first
    for table in tables:
        for number, column in enumerate(columns):
            field = table.schema.field(column)
            label = column if number else ""
            values = [
                _changed(value, row + i, label, f"row {row - first + i} of {name}", change)
                for i, value in enumerate(table.column(column).to_pylist())
            ]
            table = table.set_column(table.schema.get_field_index(column), field, pa.array(values, type=field.type))
        row += table.num_rows
        yield table


def _changed(value: Any, row: int, column: str, where: str, change: Change) -> Any:
    """A value of a column of pictures: one, a list of them, or none at all."""
    if value is None:
        return None
    if isinstance(value, list):
        return [
            _changed(entry, row, column if i == 0 else f"{column}[{i}]", f"picture {i} of {where}", change)
            for i, entry in enumerate(value)
        ]
    content, path = encoded_picture(value, where)
    if content is None:
        if path is None:
            return value
        if not is_file(path):
            raise InputError(f"{where}: {path}: no such file; expected the picture itself, or its file")
        content = read_bytes(path)
    made = change(content, where, hash_id(f"{column} {row}") if column else row)
    if not isinstance(value, dict):
        return made
    return {**value, "bytes": made, "path": None if path is None else change.stored(path)}


def write_tables(tables: Iterable[pa.Table], schema: pa.Schema, sink: IO[bytes], codec: str) -> None:
    """Write tables as the row groups of a Parquet file."""
    with pq.ParquetWriter(sink, schema, compression=codec) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=max(1, table.num_rows))
