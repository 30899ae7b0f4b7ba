"""Parquet files: columns of pictures are replaced, all other columns, row groups and the schema's metadata stay."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from blemish.core.errors import refused
from blemish.core.memory import check_fits
from blemish.core.reading import is_folder, open_regular
from blemish.data.image_files import PARQUET_SUFFIX, local_files
from blemish.data.parquet import DAMAGE
from blemish.data.tables import image_columns, other_columns
from blemish.export.containers.base import Change, Container, Shard
from blemish.export.containers.tables import changed_tables, write_tables
from blemish.export.manifest import folder_mark


@dataclass(frozen=True)
class ParquetFiles(Container):
    """A Parquet file, all in a folder, or those of a pattern. A picture's id is its place among all rows."""

    path: str
    columns: tuple[str, ...] | None = None

    name: ClassVar[str] = "parquet"

    def shards(self) -> Sequence[Shard]:
        """The files, in their order."""
        shards: list[Shard] = []
        first = 0
        for path in local_files(self.path, PARQUET_SUFFIX):
            with _opened(path) as file:
                image_columns(str(path), file.schema_arrow, self.columns)
                shards.append(Shard(path.name, path, first, file.metadata.num_rows))
            first += shards[-1].count
        return shards

    def untouched(self) -> Sequence[str]:
        """The other columns of pictures, of the first file."""
        path = local_files(self.path, PARQUET_SUFFIX)[0]
        with _opened(path) as file:
            return other_columns(str(path), file.schema_arrow, self.columns)

    def mark(self) -> str:
        """The folder that they are in."""
        return folder_mark(Path(self.path) if is_folder(self.path) else Path(self.path).parent)

    def rewrite(self, shard: Shard, sink: IO[bytes], change: Change) -> None:
        """Row group by row group."""
        with _opened(shard.path) as file:
            columns = image_columns(str(shard.path), file.schema_arrow, self.columns)
            groups = _row_groups(file, shard.path)
            changed = changed_tables(groups, columns, shard.first, str(shard.path), change)
            write_tables(changed, file.schema_arrow, sink, _codec(file))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with open_regular(path) as stream:
        with refused(f"{path}: not a readable Parquet file", *DAMAGE):
            file = pq.ParquetFile(stream)
        yield file


def _row_groups(file: Any, path: Path) -> Iterator[pa.Table]:
    for number in range(file.num_row_groups):
        check_fits(f"row group {number} of {path}", file.metadata.row_group(number).total_byte_size)
        with refused(f"{path}: not a readable Parquet file", *DAMAGE):
            group = file.read_row_group(number, use_threads=False)
        yield group


def _codec(file: Any) -> str:
    """How the first column is compressed; the others mostly are the same way."""
    if file.num_row_groups == 0:
        return "snappy"
    name = str(file.metadata.row_group(0).column(0).compression).lower()
    return "none" if name == "uncompressed" else name
