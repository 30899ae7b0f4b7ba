"""Codecs of other programs, on the CPU: JPEG by Pillow and H.265 by ffmpeg, with bits of their streams turned over.

A codec decides about pixels: another version of it may encode otherwise, and conceal damage otherwise. What a `Codec`
is called, with its version, therefore belongs to the protocol of whatever is made with it.
"""

from __future__ import annotations

import io
import math
import re
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image, features

from blemish.core.errors import InputError

PLACE_BITS = 31
"""A place in a stream is a whole number of so many bits: that share of the way from its first bit to its last."""

Planes = NDArray[np.uint8]
"""An image (C, H, W)."""


class MissingCodecError(InputError):
    """A program that encodes and decodes is not on this machine."""


@dataclass(frozen=True)
class Codec:
    """A program that makes pixels. They are the same only where it is: neither another device nor version is promised.

    It takes the place of a corruption's files: protocols state its ``kind``, and ``check`` refuses where it is missing.
    """

    name: str

    @property
    def kind(self) -> str:
        """Its name and version, or that it is missing."""
        try:
            return self.version()
        except MissingCodecError:
            return f"{self.name}, missing"

    @property
    def note(self) -> str:
        """A word of warning."""
        return f"made by {self.kind}; other versions may make other pixels"

    def check(self) -> None:
        """Refuse where it is missing, with how to get it."""
        self.version()

    def version(self) -> str:
        """Name and version of the programs that do the work."""
        return _pillow_version() if self.name == "pillow" else _ffmpeg_version(_program())


PILLOW, FFMPEG = Codec("pillow"), Codec("ffmpeg")


def _pillow_version() -> str:
    turbo = features.version_feature("libjpeg_turbo")
    library = f"libjpeg-turbo {turbo}" if turbo else f"libjpeg {features.version('jpg')}"
    return f"pillow {PIL.__version__}, {library}"


_WANTED = "H.265 streams need the program ffmpeg with the encoder libx265"


def _program() -> str:
    program = shutil.which("ffmpeg")
    if program is None:
        raise MissingCodecError(f"{_WANTED}, and there is no ffmpeg on this machine; install it (apt install ffmpeg)")
    return program


@lru_cache(maxsize=4)
def _ffmpeg_version(program: str) -> str:
    """Found by encoding one image: many builds of ffmpeg have no encoder of H.265."""
    try:
        (stream,) = _encoded([np.zeros((1, _LEAST_SIDE, _LEAST_SIDE, 3), np.uint8)], program)
        said = subprocess.run([program, "-version"], capture_output=True, check=True).stdout.decode(errors="replace")
    except (OSError, subprocess.CalledProcessError, InputError) as error:
        raise MissingCodecError(f"{_WANTED}; {program} cannot encode ({error})") from error
    encoder, words = re.search(rb"x265 \(build \d+\) - ([^:\s]+)", stream), said.split()
    return f"ffmpeg {words[2] if len(words) > 2 else 'unknown'}, x265 {encoder[1].decode() if encoder else 'unknown'}"


def jpeg_rows(channels: int, height: int) -> int:
    """In how many rows of blocks a JPEG codes an image: colour is coded in blocks of 16 pixels, gray in those of 8.

    >>> jpeg_rows(3, 224), jpeg_rows(1, 30)
    (14, 4)
    """
    return -(-height // (16 if channels == 3 else 8))


_RESTART = re.compile(rb"(\xff[\xd0-\xd7])")


def damaged_jpeg(planes: Planes, quality: int, places: NDArray[np.int64]) -> Planes:
    """An image after a JPEG round trip in which the bits at these places of its stream were turned over.

    The stream has a restart marker after each row of blocks, as those of cameras and transmissions have, so that damage
    ends with its row. Only coded pixels are damaged, neither headers nor markers: then every stream can be decoded.
    """
    mode, size = ("L" if len(planes) == 1 else "RGB"), (planes.shape[2], planes.shape[1])
    file = io.BytesIO()
    Image.fromarray(planes[0] if mode == "L" else np.ascontiguousarray(planes.transpose(1, 2, 0))).save(
        file, "JPEG", quality=quality, restart_marker_rows=1
    )
    stream = file.getvalue()
    scan = stream.index(b"\xff\xda")
    start = scan + 2 + int.from_bytes(stream[scan + 2 : scan + 4], "big")
    parts = _RESTART.split(stream[start:-2])
    # A byte of ones is followed by a zero that tells it from a marker; the zero is not damaged but made anew.
    rows = [part.replace(b"\xff\x00", b"\xff") for part in parts[::2]]
    parts[::2] = [row.replace(b"\xff", b"\xff\x00") for row in _turned_over(rows, places)]
    whole = stream[:start] + b"".join(parts) + stream[-2:]
    decoded = Image.frombytes(mode, size, whole, "jpeg", mode, "")
    bands = [np.frombuffer(decoded.tobytes("raw", band), np.uint8) for band in mode]
    return np.stack(bands).reshape(planes.shape)


def _turned_over(parts: list[bytes], places: NDArray[np.int64]) -> list[bytes]:
    """Parts of a stream with the bits at these places turned over; see `PLACE_BITS`."""
    data = bytearray(b"".join(parts))
    for where in places.tolist() if data else ():  # of a very small video, nothing may be left to damage
        bit = where * 8 * len(data) >> PLACE_BITS
        data[bit >> 3] ^= 0x80 >> (bit & 7)
    ends = np.cumsum([len(part) for part in parts]).tolist()
    return [bytes(data[first:last]) for first, last in zip([0, *ends], ends, strict=False)]


H265_FRAMES = 8
"""The frames of a clip, of which the last is kept."""

_QUANTISER = 23
# What begins a slice is not damaged: a decoder that cannot read it drops the whole frame.
_SLICE_HEADER = 16
_LEAST_SIDE = 64

# As few threads as it can do with: the stream may not depend on how many processors a machine has. With the same
# quantiser throughout, a first frame does not depend on what was encoded before, so that clips can follow each other.
_ENCODER = (
    f"log-level=none:qp={_QUANTISER}:keyint={H265_FRAMES}:min-keyint={H265_FRAMES}:scenecut=0:open-gop=0:bframes=0:"
    "ctu=16:max-tu-size=16:slices=4:wpp=1:pools=1:frame-threads=1:lookahead-threads=0"
)
# Parameter sets begin a clip's stream; its first start code has a zero more than others.
_BEGINNING = re.compile(rb"\x00?\x00\x00\x01\x40\x01")


def h265_clip(planes: Planes, right: float, down: float) -> NDArray[np.uint8]:
    """A short pan that ends at the image: frames (N, H, W, 3) of which each shows it so many pixels further on.

    What comes from outside mirrors it. Sides are filled up to multiples of 8, and 64 at least, with the edge's values.
    """
    height, width = planes.shape[1:]
    image = np.ascontiguousarray(np.broadcast_to(planes, (3, height, width)).transpose(1, 2, 0))
    filled = [max(_LEAST_SIDE, -(-side // 8) * 8) for side in (height, width)]
    frames = []
    for left in range(H265_FRAMES - 1, -1, -1):
        y, x = (
            np.abs(np.arange(large).clip(max=size - 1) + round(left * step))
            for large, size, step in zip(filled, (height, width), (down, right), strict=True)
        )
        y, x = ((n - 1) - np.abs((n - 1) - axis) for n, axis in ((height, y), (width, x)))
        frames.append(image[y.clip(0)].take(x.clip(0), axis=1))
    return np.stack(frames)


def damaged_h265(
    images: Sequence[Planes], pans: Sequence[tuple[float, float]], places: Sequence[NDArray[np.int64]]
) -> list[Planes]:
    """The last frames of short pans over images of one size, after bits of their streams were turned over.

    For each image a pan, right and down, and places; each is as it would be alone. Parameter sets, the first frame and
    the beginnings of slices stay whole: a receiver waits for such a frame.
    """
    program, clips = _program(), [h265_clip(planes, *pan) for planes, pan in zip(images, pans, strict=True)]
    streams = [_damaged(stream, own) for stream, own in zip(_encoded(clips, program), places, strict=True)]
    # A decoder for each: where damage hides pixels, it shows what its memory holds of frames before.
    pixels = _decoded(streams, program)
    return [_last_frame(*own, clips[0].shape[1:]) for own in zip(pixels, images, strict=True)]


def _damaged(stream: bytes, places: NDArray[np.int64]) -> bytes:
    units = re.split(rb"\x00\x00\x01", stream)[1:]
    whole = [_unescaped(unit) for unit in units]
    # The first 16 kinds of units are slices of frames that depend on others.
    heads = [_SLICE_HEADER if (unit[0] >> 1) & 63 < 16 else len(unit) for unit in whole]
    bodies = _turned_over([unit[head:] for unit, head in zip(whole, heads, strict=True)], places)
    damaged = (_escaped(unit[:head] + body) for unit, head, body in zip(whole, heads, bodies, strict=True))
    return b"".join(b"\x00\x00\x01" + unit for unit in damaged)


def _last_frame(pixels: bytes, planes: Planes, shape: tuple[int, ...]) -> Planes:
    area = math.prod(shape)
    if len(pixels) < area:
        raise InputError(f"{FFMPEG.kind} decoded no frame of a damaged stream; expected one at least")
    last = np.frombuffer(pixels[len(pixels) - area :], np.uint8).reshape(shape)
    shown = last[: planes.shape[1], : planes.shape[2]].transpose(2, 0, 1)
    return shown if len(planes) == 3 else np.asarray(Image.fromarray(shown.transpose(1, 2, 0)).convert("L"))[None]


def _encoded(clips: Sequence[NDArray[np.uint8]], program: str) -> list[bytes]:
    """The streams of clips of one size, made as one stream: each as it would be alone."""
    size = f"{clips[0].shape[2]}x{clips[0].shape[1]}"
    source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", size, "-r", "25"]
    codec = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", _ENCODER, "-pix_fmt", "yuv420p"]
    whole = _ffmpeg(program, source, [*codec, "-f", "hevc"], b"".join(frames.tobytes() for frames in clips))
    starts = [found.start() for found in _BEGINNING.finditer(whole)]
    if len(starts) != len(clips):
        raise InputError(f"ffmpeg made {len(starts)} H.265 streams of {len(clips)} clips; expected one of each")
    return [whole[first:last] for first, last in zip(starts, [*starts[1:], len(whole)], strict=True)]


_READ = ["-threads", "1", "-f", "hevc", "-err_detect", "ignore_err", "-flags", "output_corrupt"]
_WRITE = ["-f", "rawvideo", "-pix_fmt", "rgb24"]


def _decoded(streams: Sequence[bytes], program: str) -> list[bytes]:
    """The frames of each stream."""
    if len(streams) > 1:
        # Starting takes longer than the work. What one process makes of several is what it makes of each alone.
        with suppress(OSError, subprocess.CalledProcessError), TemporaryDirectory(prefix="blemish-") as folder:
            files = [(Path(folder, f"{number}.in"), Path(folder, f"{number}.out")) for number in range(len(streams))]
            for (path, _), own in zip(files, streams, strict=True):
                path.write_bytes(own)
            sources = chain.from_iterable([*_READ, "-i", str(path)] for path, _ in files)
            targets = chain.from_iterable(["-map", f"{n}:v", *_WRITE, str(path)] for n, (_, path) in enumerate(files))
            subprocess.run([program, *_QUIETLY, *sources, *targets], capture_output=True, check=True)
            return [path.read_bytes() for _, path in files]
        # One that cannot be read ends it for all.
    return [_ffmpeg(program, _READ, _WRITE, own) for own in streams]


_QUIETLY = ["-v", "error", "-nostdin"]


def _ffmpeg(program: str, source: list[str], target: list[str], data: bytes) -> bytes:
    """What ffmpeg makes of this, read and written as options say."""
    done = subprocess.run([program, *_QUIETLY, *source, "-i", "-", *target, "-"], input=data, capture_output=True)
    # A decoder complains of damage, and does what it can.
    if done.returncode != 0 and not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise InputError(f"ffmpeg ended with {done.returncode} ({said[-1] if said else 'no message'})")
    return done.stdout


def _unescaped(unit: bytes) -> bytes:
    return unit.replace(b"\x00\x00\x03", b"\x00\x00")


def _escaped(unit: bytes) -> bytes:
    """With a 3 after any two zeros that could be taken for the beginning of a unit."""
    return re.sub(rb"\x00\x00(?=[\x00-\x03])", b"\x00\x00\x03", unit)
