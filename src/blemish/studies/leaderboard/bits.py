"""Whether a model was right about each image under each condition, in one small file.

::

    blemish bits 1                      a line
    images, conditions, bytes of names  three little-endian integers of 32 bits
    names                               in UTF-8, sorted, with a NUL between two
    labels                              little-endian integers of 32 bits
    outcomes                            a bit for each image and condition, eight conditions to a byte:
                                        first the first eight conditions of all images, then the next eight …

All of it is compressed with xz. Severities of one corruption are neighbours, so that the bits of a byte are alike.
"""

from __future__ import annotations

import lzma
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError, refused

_MAGIC = b"blemish bits 1\n"
_COUNTS = struct.Struct("<III")
_BETWEEN = "\0"
_LONGEST_NAME = 4096
# In bytes, unpacked, or as numpy holds names and outcomes: ten times those of a million images with a hundred outcomes.
_MOST = 2**30
_SIGN = np.dtype("U1").itemsize
# Bits of neighbours in a byte are alike, those of neighbouring bytes are not: no context.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 0, "pb": 0}]


@dataclass(frozen=True, eq=False)
class Bits:
    """Images in the order of their names, their labels, and what was answered correctly: (images, conditions)."""

    names: NDArray[np.str_]
    labels: NDArray[np.int32]
    correct: NDArray[np.bool_]

    def __post_init__(self) -> None:
        """Refuse columns that do not belong together, and names that are not in order."""
        images = len(self.names)
        if self.labels.shape != (images,) or self.correct.ndim != 2 or len(self.correct) != images:
            raise InputError(
                f"{images} names, labels of shape {self.labels.shape} and outcomes of shape {self.correct.shape}; "
                "expected one row per image"
            )
        if not np.all(self.names[1:] > self.names[:-1]):
            raise InputError("names that are not sorted, or not different")


def packed(bits: Bits) -> bytes:
    """The content of the file; equal bits give equal bytes."""
    names = bits.names.tolist()
    if strange := [name for name in names if _BETWEEN in name]:
        raise InputError(f"image {strange[0]!r}: a name with a NUL in it")
    text = _BETWEEN.join(names).encode("utf-8")
    plain = b"".join(
        (
            _MAGIC,
            _COUNTS.pack(*bits.correct.shape, len(text)),
            text,
            bits.labels.astype("<i4").tobytes(),
            np.packbits(bits.correct, axis=1).T.tobytes(),
        )
    )
    return lzma.compress(plain, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, filters=_FILTERS)


def unpacked(content: bytes) -> Bits:
    """What `packed` was given. A file that says less, more or other things than it may is refused."""
    opened = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=2**28)
    with refused("not readable as xz", lzma.LZMAError, EOFError):
        start = opened.decompress(content, max_length=len(_MAGIC) + _COUNTS.size)
        if not start.startswith(_MAGIC) or len(start) < len(_MAGIC) + _COUNTS.size:
            raise InputError("not a file of bits that this version reads")
        images, conditions, length = _COUNTS.unpack(start[len(_MAGIC) :])
        width = -(-conditions // 8)
        whole = length + images * (4 + width)
        held = max(whole, images * conditions)
        if not images or not conditions or length > images * _LONGEST_NAME or held > _MOST:
            raise InputError(f"{images} images and {conditions} conditions with {length} bytes of names")
        # Never more than it says, however much is packed into it.
        rest = _read(opened, whole + 1)
    if len(rest) != whole or not opened.eof or opened.unused_data:
        raise InputError(f"{len(rest)} bytes of names, labels and bits; expected {whole}")
    with refused("names that are not UTF-8", UnicodeDecodeError):
        texts = rest[:length].decode("utf-8").split(_BETWEEN)
    if len(texts) != images:
        raise InputError(f"{len(texts)} names for {images} images")
    # Each takes as much room as the longest: one that is long enough would fill any memory.
    if (longest := max(map(len, texts))) * images * _SIGN > _MOST or longest > _LONGEST_NAME:
        raise InputError(f"{images} names, one of them of {longest} characters")
    names = np.array(texts)
    labels = np.frombuffer(rest, "<i4", images, length).astype(np.int32)
    columns: NDArray[Any] = np.frombuffer(rest, np.uint8, images * width, length + 4 * images).reshape(width, images)
    correct = np.unpackbits(np.ascontiguousarray(columns.T), axis=1, count=conditions).astype(bool)
    return Bits(names, labels, correct)


def _read(opened: lzma.LZMADecompressor, most: int) -> bytes:
    parts, left = [], most
    while left and not opened.eof:
        part = opened.decompress(b"", max_length=left)
        if not part and opened.needs_input:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
