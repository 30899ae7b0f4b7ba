"""Records: what a model said of every image under one condition, with a header that states how it was measured.

One Parquet file per model and condition. They are the only interface between running and understanding.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError, about, refused
from blemish.core.frames import Columns, Tabular
from blemish.core.reading import parse_json, read_bytes
from blemish.core.typed import as_json, read_typed
from blemish.evaluation.info import RecordsHeader

Header = TypeVar("Header")

TOP = 5
"""How many classes are kept of each prediction; places that a model with fewer classes leaves empty hold −1."""

FORMAT = 1
_HEADER = b"blemish"
# A digest of the whole file, taken while these digits were zeros. Parquet's own checksums leave out its footer.
_SEAL, _SEALED, _DIGITS = b"blemish.seal", "sealed", 32
_PREFIX = b"blake2b-128:"
# As a footer writes it: a key, a field's mark, the length of the text, the text. No other text in it can hold the mark.
_SEAL_PATTERN = re.compile(
    re.escape(_SEAL) + b"\x18" + re.escape(bytes([len(_PREFIX) + _DIGITS])) + _PREFIX + b"([0-9a-f]{32})"
)
# The columns of a file: the field of `Records` that each holds, and its type in Arrow; of lists, that of their values.
_COLUMNS = {
    "image": ("images", "string"),
    "label": ("labels", "int32"),
    "top5": ("top5", "int32"),
    "confidence": ("confidence", "float"),
    "label_confidence": ("label_confidence", "float"),
    "frame": ("frames", "int16"),
    "zipf": ("zipf", "float"),
}
_REQUIRED = tuple(_COLUMNS)[:5]


@dataclass(frozen=True, repr=False)
class Records(Tabular):
    """Predictions of one model under one condition, a row per image, or per image and frame for sequences.

    ``top5`` holds the five most probable classes, best first; ``confidence`` is the probability of the first and
    ``label_confidence`` that of the label. ``frames`` numbers the frames of sequences; ``zipf`` is the distance of a
    frame's whole ranking from that of the frame it is compared with, where it was asked for.
    """

    header: RecordsHeader
    images: NDArray[np.str_]
    labels: NDArray[np.int32]
    top5: NDArray[np.int32]
    confidence: NDArray[np.float32]
    label_confidence: NDArray[np.float32]
    frames: NDArray[np.int16] | None = None
    zipf: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        """Refuse columns that do not belong together."""
        count = len(self.images)
        if self.top5.shape != (count, TOP):
            raise InputError(f"top5 of shape {self.top5.shape} for {count} rows; expected ({count}, {TOP})")
        for name, values in self.columns().items():
            if name != "top5" and values.shape != (count,):
                raise InputError(f"{name} of shape {values.shape} for {count} rows; expected one per row")

    def __len__(self) -> int:
        return len(self.images)

    @property
    def condition(self) -> str:
        """The condition, as text."""
        return self.header.condition

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Whether the first class is the label."""
        return np.asarray(self.top5[:, 0] == self.labels)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns that there are, by the names of their fields."""
        fields = {field: getattr(self, field) for field, _ in _COLUMNS.values()}
        return {field: values for field, values in fields.items() if values is not None}

    def caption(self) -> str:
        """The condition and the number of rows."""
        return f"{self.condition}: {len(self)} predictions"

    def table(self) -> Columns:
        """A row for each prediction: its columns as in the file, and whether the first class is the label."""
        fields, top = self.columns(), self.top5.tolist()
        plain = {name: fields[field].tolist() for name, (field, _) in _COLUMNS.items() if field in fields}
        return {**plain, "top5": top, "prediction": [row[0] for row in top], "correct": self.correct.tolist()}

    def take(self, rows: NDArray[Any]) -> Records:
        """Some of the rows, by position or mask."""
        return replace(self, **{field: values[rows] for field, values in self.columns().items()})


def join(parts: Sequence[Records]) -> Records:
    """Records of the same condition on further images, one after the other, under the first one's header."""
    if len(parts) == 1:
        return parts[0]
    columns = [part.columns() for part in parts]
    shared = [field for field in columns[0] if all(field in each for each in columns)]
    return Records(parts[0].header, **{field: np.concatenate([each[field] for each in columns]) for field in shared})


def records_bytes(records: Records) -> bytes:
    """The content of a Parquet file; equal records give equal bytes."""
    import pyarrow as pa

    fields, columns = records.columns(), {}
    for column, (field, kind) in _COLUMNS.items():
        if field in fields:
            values = pa.array(fields[field].tolist() if kind == "string" else fields[field].reshape(-1), kind)
            columns[column] = pa.FixedSizeListArray.from_arrays(values, TOP) if column == "top5" else values
    return parquet_bytes(pa.table(columns), records.header)


def parquet_bytes(table: Any, header: object) -> bytes:
    """An Arrow table as a Parquet file that carries a header, a dataclass, and a digest of itself.

    `read_header` verifies the digest.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    text = json.dumps({"format": FORMAT, _SEALED: True, **as_json(header)}, ensure_ascii=False, sort_keys=True)
    sink = pa.BufferOutputStream()
    seal = {_SEAL: _PREFIX + b"0" * _DIGITS}
    pq.write_table(table.replace_schema_metadata({_HEADER: text.encode(), **seal}), sink, compression="zstd")
    content = bytes(sink.getvalue())
    digits = _seal_digits(content)
    assert digits is not None
    return content[: digits[0]] + _digest(content) + content[digits[1] :]


def _seal_digits(content: bytes) -> tuple[int, int] | None:
    """Where the digits of the seal are in a file; None where it has none."""
    if not content.endswith(b"PAR1"):
        return None  # cut off, or no Parquet file at all
    footer = max(0, len(content) - 8 - int.from_bytes(content[-8:-4], "little"))
    seals = list(_SEAL_PATTERN.finditer(content, footer))
    return seals[0].span(1) if len(seals) == 1 else None


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGITS // 2).hexdigest().encode()


def _read(path: str | os.PathLike[str]) -> tuple[bytes, bool]:
    """A file, and whether it has a seal; one that does not fit is refused before anything tries to understand it."""
    name = os.fspath(path)
    content = read_bytes(name)
    digits = _seal_digits(content)
    if digits is None:
        return content, False
    start, end = digits
    if _digest(content[:start] + b"0" * _DIGITS + content[end:]) != content[start:end]:
        raise InputError(f"{name}: damaged records (its content does not fit the digest in it)")
    return content, True


def read_header(path: str | os.PathLike[str]) -> RecordsHeader:
    """The header of a file of records alone; the whole file is verified all the same."""
    return read_header_as(RecordsHeader, path)


def read_header_as(cls: type[Header], path: str | os.PathLike[str]) -> Header:
    """The header of a file that `parquet_bytes` made, of a dataclass of its own; the whole file is verified."""
    content, sealed = _read(path)
    return _header(cls, os.fspath(path), content, sealed=sealed)


def _header(cls: type[Header], name: str, content: bytes, *, sealed: bool) -> Header:
    import pyarrow as pa
    import pyarrow.parquet as pq

    unreadable = (OSError, pa.ArrowException, ValueError, KeyError)
    with refused(f"{name}: not a readable file of records", *unreadable):
        metadata = pq.read_schema(pa.BufferReader(content)).metadata or {}
    try:
        header = dict(parse_json(metadata[_HEADER]))
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(f"{name}: a Parquet file, but not of blemish records (it has no header)") from error
    if (number := header.pop("format", None)) != FORMAT:
        raise InputError(f"{name}: records of format {number}; this version reads format {FORMAT}")
    if header.pop(_SEALED, False) and not sealed:
        raise InputError(f"{name}: damaged records (the digest that was in it is gone)")
    with about(f"{name}: its header"):
        return read_typed(cls, header)


def read_records(path: str | os.PathLike[str]) -> Records:
    """Records as they were written; a damaged file is refused with its name."""
    header, columns = _header_and_columns(path, _COLUMNS)
    return Records(header, **{_COLUMNS[column][0]: values for column, values in columns.items()})


def read_correct(path: str | os.PathLike[str]) -> tuple[RecordsHeader, NDArray[np.bool_]]:
    """The header of a file of records, and whether the first class is the label: a tenth of the work of reading all."""
    header, columns = _header_and_columns(path, ("label", "top5"))
    return header, np.asarray(columns["top5"][:, 0] == columns["label"])


def read_table(path: str | os.PathLike[str]) -> tuple[RecordsHeader, dict[str, Any]]:
    """The header of a file of records, and all its columns as Arrow arrays, whatever they are; the file is verified."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = os.fspath(path)
    content, sealed = _read(path)
    header = _header(RecordsHeader, name, content, sealed=sealed)
    with refused(f"{name}: damaged records", OSError, pa.ArrowException, ValueError, KeyError):
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        return header, {column: table[column].combine_chunks() for column in table.column_names}


def _header_and_columns(
    path: str | os.PathLike[str], wanted: Collection[str]
) -> tuple[RecordsHeader, dict[str, NDArray[Any]]]:
    """The header and columns of a file, each of the type that was written and without nulls, which would be numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = os.fspath(path)
    content, sealed = _read(path)
    header = _header(RecordsHeader, name, content, sealed=sealed)
    unreadable = (OSError, pa.ArrowException, ValueError, KeyError)
    with refused(f"{name}: damaged records", *unreadable):
        present = pq.read_schema(pa.BufferReader(content)).names
        chosen = [column for column in wanted if column in present]
        if missing := [column for column in _REQUIRED if column in wanted and column not in present]:
            raise InputError(f"{name}: records without {', '.join(missing)}; expected {', '.join(_REQUIRED)}")
        # Without threads of its own: beside torch they end many a program with an abort when it exits.
        table = pq.ParquetFile(pa.BufferReader(content)).read(columns=chosen, use_threads=False)
        arrays = {column: pa.concat_arrays(table[column].chunks) for column in chosen} if len(table) else {}
    if not arrays:
        raise InputError(f"{name}: records of no images; expected at least one")
    for column, values in arrays.items():
        _check_column(f"{name}: {column}", column, values)
    return header, {column: _as_numpy(column, values) for column, values in arrays.items()}


def _as_numpy(column: str, values: Any) -> NDArray[Any]:
    if column == "image":
        return np.asarray(values.to_pylist(), dtype=np.str_)
    return np.asarray(values.flatten()).reshape(-1, TOP) if column == "top5" else np.asarray(values.to_numpy())


def _check_column(where: str, column: str, values: Any) -> None:
    import pyarrow as pa

    kind = values.type
    if column == "top5" and pa.types.is_fixed_size_list(kind) and kind.list_size == TOP:
        inside = values.flatten()
        kind, empty = inside.type, values.null_count + inside.null_count
    else:
        empty = values.null_count
    expected = _COLUMNS[column][1]
    if str(kind) != expected:
        raise InputError(f"{where} of type {values.type} in records; expected {expected}")
    if empty:
        raise InputError(f"{where} is empty in {empty} of {len(values)} records; expected one for every image")
    if column == "label" and int(np.asarray(values).min()) < 0:
        raise InputError(f"{where} is negative in records; expected the number of a class")
