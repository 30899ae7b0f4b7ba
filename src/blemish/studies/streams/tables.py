"""Measurements on streams as files: Parquet, with a header that says what they are and how they were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from blemish.core.errors import InputError, about
from blemish.core.reading import read_bytes
from blemish.core.typed import read_typed
from blemish.evaluation.records import read_header_as


@dataclass(frozen=True)
class TableHeader:
    """What every header of these files has: what is in the file."""

    kind: str = ""


Header = TypeVar("Header", bound=TableHeader)


def read_table(path: Path, header: type[Header], columns: Sequence[str]) -> tuple[Header, Any]:
    """Header and arrow table of a file with at least these columns; others are refused with their name.

    The default of the header's field ``kind`` says what a file has to be.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    entries = read_header_as(dict[str, Any], path)
    if (kind := entries.get("kind", "a model on a benchmark")) != header.kind:
        raise InputError(f"{path}: records of {kind}; expected {header.kind}")
    with about(f"{path}: its header"):
        said = read_typed(header, entries)
    try:
        table = pq.read_table(pa.BufferReader(read_bytes(path))).combine_chunks()
    except (OSError, pa.ArrowException, ValueError) as error:
        raise InputError(f"{path}: damaged records ({str(error).splitlines()[0]})") from error
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise InputError(f"{path}: records without {', '.join(missing)}; expected {', '.join(columns)}")
    return said, table
