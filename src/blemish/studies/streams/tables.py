"""Measurements on streams as files: Parquet, with a header that says what they are and how they were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from blemish.core.errors import InputError
from blemish.core.reading import read_bytes
from blemish.evaluation.records import parquet_bytes, read_header_as

__all__ = ["read_table", "table_bytes"]


def table_bytes(kind: str, header: Mapping[str, Any], columns: Mapping[str, Any]) -> bytes:
    """The content of a Parquet file of this kind; equal columns (arrow arrays) give equal bytes."""
    import pyarrow as pa

    return parquet_bytes(pa.table(dict(columns)), {"kind": kind, **header})


def read_table(path: Path, kind: str, columns: Sequence[str]) -> tuple[dict[str, Any], Any]:
    """Header and arrow table of a file of this kind with at least these columns; others are refused with their name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    header = read_header_as(dict[str, Any], path)
    if header.get("kind") != kind:
        raise InputError(f"{path}: records of {header.get('kind', 'a model on a benchmark')}; expected {kind}")
    try:
        table = pq.read_table(pa.BufferReader(read_bytes(path))).combine_chunks()
    except (OSError, pa.ArrowException, ValueError) as error:
        raise InputError(f"{path}: damaged records ({str(error).splitlines()[0]})") from error
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise InputError(f"{path}: records without {', '.join(missing)}; expected {', '.join(columns)}")
    return header, table
