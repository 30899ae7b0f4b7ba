"""Tables in TSV files with pictures in base64, as VLMEvalKit reads them: the cells of pictures are replaced.

A cell of the column ``image`` holds a picture, a list of pictures written as Python writes lists, or in at most 64
characters the ``index`` of the row whose picture is meant. Such references stay.
"""

from __future__ import annotations

import ast
import base64
import binascii
import contextlib
import csv
import io
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar

from blemish.core.errors import InputError, refused
from blemish.core.reading import open_regular
from blemish.core.rng import hash_id
from blemish.corruptions.severity import severity_text
from blemish.export.containers.base import Change, Container, Shard
from blemish.export.manifest import folder_mark

_REFERENCE = 64
"""Characters of a cell that names another row at most: no picture is that short."""


@dataclass(frozen=True)
class TsvFile(Container):
    """One file, with a header. A picture's id is the hash of the ``index`` of its row, or of the row's number.

    Copies stand in one folder, as ``<name>_<corruption>_<severity>.tsv``: a name of its own for every set, because
    VLMEvalKit keeps the pictures of a set by its name.
    """

    path: str

    name: ClassVar[str] = "tsv"

    def shards(self) -> Sequence[Shard]:
        """The file itself, once it has been read through."""
        path = Path(self.path)
        with _rows(path) as rows:
            header = next(rows)
            count = sum(1 for _ in rows)
        _column(path, header)
        return [Shard(path.name, path, 0, count)]

    def mark(self) -> str:
        """The folder that it is in."""
        return folder_mark(Path(self.path).absolute().parent)

    def copy_name(self, shard: Shard, corruption: str, severity: float) -> str:
        """Beside those of other conditions; a colon is no part of names that other programs take for files."""
        return f"{Path(shard.name).stem}_{corruption.replace(':', '-')}_{severity_text(severity)}.tsv"

    def rewrite(self, shard: Shard, sink: IO[bytes], change: Change) -> None:
        """Row by row."""
        text = io.TextIOWrapper(sink, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, delimiter="\t", lineterminator="\n")
        quoting = csv.writer(text, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_ALL)
        with _rows(shard.path) as rows:
            header = next(rows)
            column, index = _column(shard.path, header), header.index("index") if "index" in header else None
            writer.writerow(header)
            for number, row in enumerate(rows):
                if len(row) != len(header):
                    raise InputError(f"{shard.path}: row {number} has {len(row)} cells; expected {len(header)}")
                name = str(number) if index is None else row[index]
                row[column] = _changed(row[column], name, f"row {number} of {shard.path}", change)
                # Before 3.13 a lone carriage return is not quoted, and readers would end the row there.
                (quoting if any("\r" in cell for cell in row) else writer).writerow(row)
        text.detach()


def _changed(cell: str, name: str, where: str, change: Change) -> str:
    if cell.startswith("[") and cell.endswith("]"):
        with refused(f"{where}: not a list of pictures", ValueError, SyntaxError, MemoryError, RecursionError):
            pictures = ast.literal_eval(cell)
        if not isinstance(pictures, list) or not all(isinstance(entry, str) for entry in pictures):
            raise InputError(f"{where}: a list of something else; expected pictures in base64")
        return repr([_one(entry, name if i == 0 else f"{name}/{i}", where, change) for i, entry in enumerate(pictures)])
    return _one(cell, name, where, change)


def _one(cell: str, name: str, where: str, change: Change) -> str:
    if len(cell) <= _REFERENCE:
        return cell
    try:
        content = base64.b64decode(cell, validate=True)
    except binascii.Error as error:
        raise InputError(f"{where}: not a picture in base64 ({error})") from error
    return base64.b64encode(change(content, where, hash_id(name))).decode("ascii")


def _column(path: Path, header: list[str]) -> int:
    if "image" not in header:
        raise InputError(f"{path}: columns {', '.join(header)}; expected one called image, with pictures in base64")
    return header.index("image")


# The longest cell is a setting of all of Python's readers.
_limit = threading.Lock()


@contextlib.contextmanager
def _rows(path: Path) -> Iterator[Iterator[list[str]]]:
    with _limit, open_regular(path) as stream:
        before = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        try:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            with refused(f"{path}: not a readable TSV file", csv.Error, UnicodeDecodeError):
                yield csv.reader(text, delimiter="\t", strict=True)
        finally:
            csv.field_size_limit(before)
