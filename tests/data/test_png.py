"""PNG files that hold fewer rows than they say: Pillow fills the rest with black, and says nothing."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from blemish.core.errors import InputError
from blemish.data.pictures import decode_picture

SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
WIDTH, HEIGHT = 11, 13


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def row(colour: int, bits: int, width: int, level: int) -> bytes:
    return b"\0" + bytes([level]) * (-(-width * SAMPLES[colour] * bits // 8))


def png(rows: list[bytes], colour: int = 2, bits: int = 8, *, interlaced: bool = False, end: bool = True) -> bytes:
    """A picture of 11 × 13 with these rows, whole ones, and everything else in order."""
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, bits, colour, 0, 0, interlaced)
    packed = zlib.compressobj()
    data = packed.compress(b"".join(rows)) + packed.flush(zlib.Z_FINISH if end else zlib.Z_SYNC_FLUSH)
    palette = chunk(b"PLTE", bytes(range(256)) * 3) if colour == 3 else b""
    parts = [chunk(b"IHDR", header), palette, chunk(b"IDAT", data), chunk(b"IEND", b"") if end else b""]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize("end", [True, False], ids=["ended", "cut"])
@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("colour", SAMPLES)
@pytest.mark.parametrize("level", [0, 7])
def test_missing_rows(colour: int, bits: int, end: bool, level: int) -> None:
    if colour == 3 and bits == 16:
        pytest.skip("a palette has eight bits at most")
    rows = [row(colour, bits, WIDTH, level)] * HEIGHT
    whole = decode_picture(png(rows, colour, bits, end=end), "whole.png")
    assert whole.size == (WIDTH, HEIGHT)
    for count in (0, 1, HEIGHT - 1):
        with pytest.raises(InputError, match=r"short\.png: not a readable picture"):
            decode_picture(png(rows[:count], colour, bits, end=end), "short.png")


def test_it_is_told_how_much_is_missing() -> None:
    rows = [row(2, 8, WIDTH, 7)] * (HEIGHT - 1)
    with pytest.raises(InputError, match="cut off: 408 of 442 bytes of pixels"):
        decode_picture(png(rows), "short.png")


@pytest.mark.parametrize("level", [0, 7])
def test_interlaced(level: int) -> None:
    """Seven passes, each a smaller picture: columns and rows are counted by hand."""
    sizes = [(2, 2), (1, 2), (3, 2), (3, 4), (6, 3), (5, 7), (11, 6)]
    rows = [row(2, 8, width, level) for width, height in sizes for _ in range(height)]
    decode_picture(png(rows, interlaced=True), "whole.png")
    for count in (0, 5, len(rows) - 6, len(rows) - 1):
        with pytest.raises(InputError, match="not a readable picture"):
            decode_picture(png(rows[:count], interlaced=True), "short.png")


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
@pytest.mark.parametrize("size", [(1, 1), (7, 3), (16, 16), (33, 5)])
def test_black_pictures_are_fine(mode: str, size: tuple[int, int]) -> None:
    buffer = io.BytesIO()
    Image.new(mode, size).save(buffer, "PNG")
    assert not np.asarray(decode_picture(buffer.getvalue(), "black.png")).any()


def test_several_chunks_of_data() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (200, 200, 3), np.uint8)
    pixels[-1] = 0
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    assert buffer.getvalue().count(b"IDAT") > 1
    np.testing.assert_array_equal(np.asarray(decode_picture(buffer.getvalue(), "a.png")), pixels)
