"""Where decoded pixels go: into memory, or into a file that later runs map."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import tempfile
import threading
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import storage_errors
from blemish.core.files import PartFile
from blemish.data.images import DIGEST_BYTES

MAGIC = b"blemish pixels 2"

_log = logging.getLogger(__name__)


class Pixels(NamedTuple):
    """Images one after the other, each of a shape (C, H, W) and with a digest."""

    pixels: NDArray[np.uint8]
    shapes: NDArray[np.int64]
    digests: NDArray[np.uint8]


class PixelStore:
    """Pixels on their way: into memory, and where they exceed the limit into a file.

    Where the sizes of images are known only once they are decoded, they are appended one after the other. Else there is
    room for all of them from the beginning, which several threads fill at a time: nothing is copied on the way.

    The file has a temporary name until it is complete. It ends with the shapes, a digest of each image, one of the
    shapes and those digests, the number of images, and a mark.
    """

    def __init__(self, limit: int, kept: Path | None, folder: str | os.PathLike[str] | None) -> None:
        self._limit, self._kept, self._folder = limit, kept, folder
        self._stream: IO[bytes] = io.BytesIO()
        self._part: PartFile | None = None
        self._size = 0
        self._memory: NDArray[np.uint8] | None = None
        self._writing = threading.Lock()
        self._scratch = threading.local()

    def __enter__(self) -> PixelStore:
        return self

    def __exit__(self, *_: object) -> None:
        if self._part is not None:
            self._part.discard()
        elif not isinstance(self._stream, io.BytesIO):
            with contextlib.suppress(OSError):  # a full disk may keep it from being closed
                self._stream.close()

    def append(self, levels: NDArray[np.uint8]) -> None:
        """Put an image behind the others."""
        self._size += levels.size
        with storage_errors(f"cannot write decoded images to {self._where}"):
            if isinstance(self._stream, io.BytesIO) and self._size > self._limit:
                self._spill(self._stream)
            self._stream.write(levels.data)

    def reserve(self, size: int) -> None:
        """Make room for as many bytes, which are then put at their places."""
        self._size = size
        if size <= self._limit:
            self._memory = np.empty(size, dtype=np.uint8)
            return
        with storage_errors(f"cannot write decoded images to {self._where}"):
            self._spill(io.BytesIO())

    def room(self, start: int, size: int) -> NDArray[np.uint8]:
        """Where the calling thread makes the pixels that are to stand at a place; `keep` is to be called afterwards."""
        if self._memory is not None:
            return self._memory[start : start + size]
        # Memory that is used again: returning it to the system each time would hold up all other threads.
        scratch: NDArray[np.uint8] | None = getattr(self._scratch, "block", None)
        if scratch is None or scratch.size < size:
            scratch = self._scratch.block = np.empty(size, dtype=np.uint8)
        return scratch[:size]

    def keep(self, start: int, made: NDArray[np.uint8]) -> None:
        """Have what was made in some `room` stand at its place."""
        if self._memory is not None:
            return
        with storage_errors(f"cannot write decoded images to {self._where}"), self._writing:
            self._stream.seek(start)
            self._stream.write(made.data)

    def finish(self, shapes: NDArray[np.int64], digests: NDArray[np.uint8]) -> Pixels:
        """All pixels, for reading."""
        if self._memory is not None:
            return Pixels(self._memory, shapes, digests)
        if isinstance(self._stream, io.BytesIO):
            return Pixels(np.frombuffer(self._stream.getbuffer(), dtype=np.uint8), shapes, digests)
        with storage_errors(f"cannot write decoded images to {self._where}"):
            if self._part is not None:
                self._stream.seek(self._size)
                self._stream.write(footer_of(shapes, digests))
                self._part.rename()  # its digests tell whether all of it has reached the disk
            else:
                self._stream.flush()
        file = self._stream if self._kept is None else self._kept
        return Pixels(np.memmap(file, dtype=np.uint8, mode="r", shape=(self._size,)), shapes, digests)

    def _spill(self, memory: io.BytesIO) -> None:
        _log.info("more than %d bytes of pixels: they go to a file in %s", self._limit, self._where)
        if self._folder is not None:
            Path(self._folder).mkdir(parents=True, exist_ok=True)
        if self._kept is None:
            self._stream = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  # __exit__ closes it
        else:
            self._part = PartFile(self._kept)
            self._stream = self._part.stream
        self._stream.write(memory.getbuffer())

    @property
    def _where(self) -> str | os.PathLike[str]:
        return self._folder or tempfile.gettempdir()


def footer_of(shapes: NDArray[np.int64], digests: NDArray[np.uint8]) -> bytes:
    """What a file of pixels ends with."""
    body = shapes.astype("<i8").tobytes() + digests.tobytes()
    check = hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()
    return body + check + len(shapes).to_bytes(8, "little") + MAGIC


def stored_pixels(path: Path, count: int) -> Pixels | None:
    """What a finished file of ``count`` images claims to hold; None for one that is missing or was cut off.

    Whether the pixels are those of the digests is still to be found out.
    """
    tail = (24 + DIGEST_BYTES) * count + DIGEST_BYTES + 8 + len(MAGIC)
    try:
        size = path.stat().st_size - tail
        if size <= 0:
            return None
        with path.open("rb") as stream:
            stream.seek(size)
            footer = stream.read(tail)
    except OSError:
        return None
    shapes = np.frombuffer(footer[: 24 * count], dtype="<i8").reshape(count, 3).astype(np.int64)
    digests = np.frombuffer(footer[24 * count : (24 + DIGEST_BYTES) * count], dtype=np.uint8).reshape(count, -1)
    if footer != footer_of(shapes, digests) or int(shapes.prod(axis=1).sum()) != size:
        return None
    return Pixels(np.memmap(path, dtype=np.uint8, mode="r", shape=(size,)), shapes, digests)
