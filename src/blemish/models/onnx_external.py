"""The files beside an ONNX model that hold values of its tensors, found without a library that opens them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

from blemish.core.errors import InputError, refused
from blemish.core.reading import check_regular, is_there, read_bytes

# Where tensors are in a model: for each message of ONNX's protobuf schema, the fields that lead to them.
_FIELDS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_KEY, _VALUE = 1, 2
_VARINT, _BYTES = 0, 2
_SIZES = {1: 8, 5: 4}


def external_files(path: Path) -> list[Path]:
    """The files that a model's tensors name, each a regular file in or below its folder; others are refused."""
    with refused(f"{path}: not a readable ONNX model", IndexError, ValueError):
        names = sorted(set(_locations(read_bytes(path))))
    files = []
    for name in names:
        parts = PureWindowsPath(name)  # splits at both kinds of slashes, and knows drives
        if not PurePosixPath(name).parts or parts.drive or parts.root or ".." in parts.parts or "\0" in name:
            raise InputError(f"{path}: has values in {name!r}; expected a file in or below its own folder")
        if is_there(path.parent / name):  # a missing one is told by the runtime, with the tensor's name
            check_regular(path.parent / name)
            files.append(path.parent / name)
    return files


def _locations(content: bytes) -> Iterator[str]:
    left = [("model", 0, len(content))]
    while left:
        kind, start, end = left.pop()
        for field, begin, stop in _texts(content, start, end):
            inside = _FIELDS[kind].get(field)
            if inside == "entry":
                entry = {number: content[first:last] for number, first, last in _texts(content, begin, stop)}
                if entry.get(_KEY) == b"location":
                    yield entry.get(_VALUE, b"").decode(errors="replace")
            elif inside is not None:
                left.append((inside, begin, stop))


def _texts(content: bytes, offset: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The fields of a message that hold bytes: texts and further messages. Each with its number, start and end."""
    while offset < end:
        tag, offset = _varint(content, offset)
        wire = tag & 7
        if wire in (_VARINT, _BYTES):
            size, offset = _varint(content, offset)
            if wire == _VARINT:
                continue
        elif wire in _SIZES:
            size = _SIZES[wire]
        else:
            raise ValueError(f"a field of unknown kind at byte {offset}")
        if offset + size > end:
            raise ValueError("cut off")
        if wire == _BYTES:
            yield tag >> 3, offset, offset + size
        offset += size


def _varint(content: bytes, offset: int) -> tuple[int, int]:
    """A number, and where the next field begins."""
    number = 0
    for shift in range(0, 70, 7):
        byte = content[offset]
        offset += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, offset
    raise ValueError(f"a damaged number at byte {offset}")
