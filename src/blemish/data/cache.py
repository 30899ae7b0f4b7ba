"""Decoding, resizing and cropping once: images go into memory, or into a file that later runs map."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image

from blemish.core.errors import InputError, about, storage_errors
from blemish.core.files import PartFile
from blemish.core.progress import READING, ProgressReport, tell_nobody
from blemish.core.types import Square
from blemish.data.images import DIGEST_BYTES, Images, image_digest
from blemish.data.pictures import resize_and_crop
from blemish.data.source import Source

__all__ = ["MEMORY_LIMIT", "Images", "load"]

MEMORY_LIMIT = 2 * 2**30
"""Bytes of pixels that are kept in memory; more of them go to a file."""

Result = TypeVar("Result")

_log = logging.getLogger(__name__)

_MAGIC = b"blemish pixels 2"


def load(
    source: Source,
    *,
    resize: int | None = None,
    crop: int | Square | None = None,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    limit: int = MEMORY_LIMIT,
    progress: ProgressReport = tell_nobody,
) -> Images:
    """All images of a source, decoded by ``workers`` threads and brought to size as `resize_and_crop` does.

    Up to ``limit`` bytes of pixels stay in memory; 0 sends all to a file. With a ``folder``, the file stays there and
    is mapped again by later calls for the same files and sizes; without, it is a temporary one.
    """
    count = workers if workers is not None else min(8, os.cpu_count() or 1)
    if count < 1:
        raise InputError(f"{count} workers; expected at least 1")
    kept = _kept_file(source, folder, resize, crop)
    decoded = _open_file(kept, len(source), count) if kept is not None else None
    if decoded is None:
        start = time.perf_counter()
        decoded = _decode(source, resize, crop, count, _Sink(limit, kept, folder), progress)
        _log.debug("%d images were decoded by %d threads in %.2f s", len(source), count, time.perf_counter() - start)
    else:
        _log.info("using the decoded images in %s", kept)
        progress(len(source), len(source), READING)
    sizes = decoded.shapes.prod(axis=1)
    return Images(
        name=source.name,
        names=source.names,
        ids=source.ids,
        labels=source.labels,
        pixels=decoded.pixels,
        starts=np.cumsum(sizes) - sizes,
        shapes=decoded.shapes,
        digests=decoded.digests,
        classes=source.classes,
        groups=source.groups,
        note=source.note,
    )


class _Pixels(NamedTuple):
    pixels: NDArray[np.uint8]
    shapes: NDArray[np.int64]
    digests: NDArray[np.uint8]


def _kept_file(
    source: Source, folder: str | os.PathLike[str] | None, resize: int | None, crop: int | Square | None
) -> Path | None:
    """The file of a source whose images can be told from others without decoding them."""
    if folder is None or source.stamp is None:
        return None
    key = hashlib.blake2b(digest_size=16)
    key.update(f"{_MAGIC!r}|{PIL.__version__}|{source.channels}|{resize}|{crop}|{len(source)}".encode())
    for i, name in enumerate(source.names):
        key.update(f"\n{name}|{int(source.ids[i])}|{source.stamp(i)}".encode("utf-8", "surrogateescape"))
    return Path(folder) / f"{key.hexdigest()}.pixels"


def _decode(
    source: Source, resize: int | None, crop: int | Square | None, workers: int, sink: _Sink, progress: ProgressReport
) -> _Pixels:
    shapes = np.empty((len(source), 3), dtype=np.int64)
    digests = np.empty((len(source), DIGEST_BYTES), dtype=np.uint8)

    def work(row: int) -> tuple[NDArray[np.uint8], bytes]:
        picture = source.read(row)
        with about(f"{source.name}, {source.names[row]}"):
            levels = _planes(resize_and_crop(picture, resize=resize, crop=crop), source.channels)
        return levels, image_digest(levels)

    with sink:
        for row, (levels, digest) in enumerate(_ahead(work, len(source), workers)):
            shapes[row] = levels.shape
            digests[row] = np.frombuffer(digest, dtype=np.uint8)
            sink.append(levels)
            progress(row + 1, len(source), READING)
        return sink.finish(shapes, digests)


def _ahead(work: Callable[[int], Result], count: int, workers: int) -> Iterator[Result]:
    """The results for 0, 1, …, made by several threads, a few ahead of the one that is asked for."""
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for row in range(count):
                waiting.append(pool.submit(work, row))
                if len(waiting) > 4 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _planes(picture: Image.Image, channels: int) -> NDArray[np.uint8]:
    if channels == 1 and picture.mode != "L":
        raise InputError(f"a picture of mode {picture.mode} among gray ones; expected mode L")
    levels = np.asarray(picture if channels == 1 or picture.mode == "RGB" else picture.convert("RGB"))
    return np.ascontiguousarray(levels.reshape(*levels.shape[:2], channels).transpose(2, 0, 1))


class _Sink:
    """Pixels on their way: into memory, and from the moment that they exceed the limit into a file.

    The file has a temporary name until it is complete. It ends with the shapes, a digest of each image, one of the
    shapes and those digests, the number of images, and a mark.
    """

    def __init__(self, limit: int, kept: Path | None, folder: str | os.PathLike[str] | None) -> None:
        self._limit, self._kept, self._folder = limit, kept, folder
        self._stream: IO[bytes] = io.BytesIO()
        self._part: PartFile | None = None
        self._size = 0

    def __enter__(self) -> _Sink:
        return self

    def __exit__(self, *_: object) -> None:
        if self._part is not None:
            self._part.discard()
        elif not isinstance(self._stream, io.BytesIO):
            with contextlib.suppress(OSError):  # a full disk may keep it from being closed
                self._stream.close()

    def append(self, levels: NDArray[np.uint8]) -> None:
        self._size += levels.size
        with storage_errors(f"cannot write decoded images to {self._where}"):
            if isinstance(self._stream, io.BytesIO) and self._size > self._limit:
                self._spill(self._stream)
            self._stream.write(levels.data)

    def finish(self, shapes: NDArray[np.int64], digests: NDArray[np.uint8]) -> _Pixels:
        if isinstance(self._stream, io.BytesIO):
            return _Pixels(np.frombuffer(self._stream.getbuffer(), dtype=np.uint8), shapes, digests)
        with storage_errors(f"cannot write decoded images to {self._where}"):
            if self._part is not None:
                self._stream.write(_footer(shapes, digests))
                self._part.rename()  # its digests tell whether all of it has reached the disk
            else:
                self._stream.flush()
        file = self._stream if self._kept is None else self._kept
        return _Pixels(np.memmap(file, dtype=np.uint8, mode="r", shape=(self._size,)), shapes, digests)

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


def _footer(shapes: NDArray[np.int64], digests: NDArray[np.uint8]) -> bytes:
    body = shapes.astype("<i8").tobytes() + digests.tobytes()
    check = hashlib.blake2b(body, digest_size=DIGEST_BYTES).digest()
    return body + check + len(shapes).to_bytes(8, "little") + _MAGIC


def _open_file(path: Path, count: int, workers: int) -> _Pixels | None:
    """What a finished file holds; None for one that is missing or damaged, which is then made anew."""
    tail = (24 + DIGEST_BYTES) * count + DIGEST_BYTES + 8 + len(_MAGIC)
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
    if footer != _footer(shapes, digests) or int(shapes.prod(axis=1).sum()) != size:
        return None
    pixels = np.memmap(path, dtype=np.uint8, mode="r", shape=(size,))
    stops = np.cumsum(shapes.prod(axis=1)).tolist()

    def sound(row: int) -> bool:
        return bool(image_digest(pixels[stops[row - 1] if row else 0 : stops[row]]) == digests[row].tobytes())

    return _Pixels(pixels, shapes, digests) if all(_ahead(sound, count, workers)) else None
