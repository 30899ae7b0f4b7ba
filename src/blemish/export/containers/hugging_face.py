"""Hugging Face datasets: written as Parquet files whose metadata hold the features, so that they read back alike."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import pyarrow as pa

from blemish.core.errors import InputError
from blemish.data.hugging_face import PREFIX, plain_rows
from blemish.data.tables import image_columns, other_columns
from blemish.export.containers.base import Change, Container, Shard
from blemish.export.containers.tables import changed_tables, write_tables
from blemish.export.journal import SourceFile
from blemish.export.manifest import folder_mark

# Rows of a file, and of a row group.
_ROWS, _GROUP = 2_000, 100


@dataclass(frozen=True)
class HuggingFaceRows(Container):
    """A dataset on the hub or in its cache (``hf:NAME:SPLIT``), or a saved folder. A picture's id is its position."""

    address: str
    columns: tuple[str, ...] | None = None

    name: ClassVar[str] = "hugging face"

    def shards(self) -> Sequence[Shard]:
        """Files of some rows each, called as the library calls those of a split."""
        data = _rows(self.address)
        if len(data) == 0:
            raise InputError(f"{self.address}: no rows in it")
        image_columns(self.address, data.features.arrow_schema, self.columns)
        split = re.sub(r"[^A-Za-z0-9_.]+", "_", str(data.split or "train"))
        count = -(-len(data) // _ROWS)
        return [
            Shard(
                f"{split}-{number:05}-of-{count:05}.parquet",
                Path(self.address),
                number * _ROWS,
                min(_ROWS, len(data) - number * _ROWS),
            )
            for number in range(count)
        ]

    def untouched(self) -> Sequence[str]:
        """The other columns of pictures."""
        return other_columns(self.address, _rows(self.address).features.arrow_schema, self.columns)

    def mark(self) -> str:
        """The address, or the folder."""
        return self.address if self.address.startswith(PREFIX) else folder_mark(Path(self.address))

    def source(self) -> SourceFile:
        """The library's own fingerprint tells a dataset from others."""
        data = _rows(self.address)
        return SourceFile(len(data), 0, str(getattr(data, "_fingerprint", len(data))))

    def rewrite(self, shard: Shard, sink: IO[bytes], change: Change) -> None:
        """Some rows at a time."""
        data = _rows(self.address)
        schema = data.features.arrow_schema
        columns = image_columns(self.address, schema, self.columns)
        groups = _groups(data, schema, shard)
        changed = changed_tables(groups, columns, shard.first, shard.name, change)
        write_tables(changed, schema, sink, "snappy")


@functools.lru_cache(maxsize=1)
def _rows(source: str) -> Any:
    return plain_rows(source)


def _groups(data: Any, schema: pa.Schema, shard: Shard) -> Iterator[pa.Table]:
    rows = data.with_format("arrow")
    for start in range(shard.first, shard.first + shard.count, _GROUP):
        yield rows[start : min(start + _GROUP, shard.first + shard.count)].cast(schema)
