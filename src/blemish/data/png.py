"""Whether a PNG file holds all of its rows: Pillow fills those that are missing with zeros, without a word."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np
from PIL import Image

from blemish.core.errors import InputError

_SIGNATURE = 8
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
# First column and row, and the steps to the next, of the seven passes of an interlaced picture.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_PART = 2**20


def check_whole(picture: Image.Image, content: bytes) -> None:
    """Refuse a decoded picture whose file ends before its last row.

    Only one whose last row is all zeros can be such a picture; to know, its data are unpacked once more.
    """
    width, height = picture.size
    header = content[_SIGNATURE + 8 : _SIGNATURE + 21]
    interlaced = header[12] != 0
    if not interlaced and np.asarray(picture.crop((0, height - 1, width, height))).any():
        return
    expected = _size(width, height, bits=header[8] * _SAMPLES.get(header[9], 1), interlaced=interlaced)
    held = _unpacked(content, expected)
    if held < expected:
        raise InputError(f"cut off: {held:,} of {expected:,} bytes of pixels")


def _size(width: int, height: int, *, bits: int, interlaced: bool) -> int:
    """How many bytes the rows take: a byte for the filter of each, then the pixels."""
    passes = _PASSES if interlaced else ((0, 0, 1, 1),)
    sizes = [(-(-(width - left) // across), -(-(height - top) // down)) for left, top, across, down in passes]
    return sum(rows * (1 + -(-columns * bits // 8)) for columns, rows in sizes if columns > 0 and rows > 0)


def _unpacked(content: bytes, most: int) -> int:
    """How many bytes of pixels there are, counted up to ``most``."""
    stream, count = zlib.decompressobj(), 0
    for data in _image_data(content):
        while data and count < most and not stream.eof:
            try:
                count += len(stream.decompress(data, _PART))
            except zlib.error:
                return count
            data = stream.unconsumed_tail
    return count


def _image_data(content: bytes) -> Iterator[bytes]:
    start = _SIGNATURE
    while start + 8 <= len(content):
        length = int.from_bytes(content[start : start + 4], "big")
        if content[start + 4 : start + 8] == b"IDAT":
            yield content[start + 8 : start + 8 + length]
        start += 12 + length
