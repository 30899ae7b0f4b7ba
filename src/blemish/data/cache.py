"""Decoding, resizing and cropping once: images go into memory, or into a file that later runs map."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import os
import time
from pathlib import Path

import numpy as np
import PIL
from numpy.typing import NDArray
from PIL import Image

from blemish.core.ahead import ahead
from blemish.core.errors import InputError, about
from blemish.core.memory import available_memory
from blemish.core.progress import READING, ProgressReport, tell_nobody
from blemish.core.types import Square
from blemish.data.blocks import BlockReader
from blemish.data.images import DIGEST_BYTES, Images, image_digest
from blemish.data.pictures import resize_and_crop
from blemish.data.pixel_store import MAGIC, Pixels, PixelStore, stored_pixels
from blemish.data.source import Source

__all__ = ["Images", "known_shape", "load"]

# Bytes of pixels that are kept in memory whatever is free, and the share of what is free; more of them go to a file.
_LEAST_LIMIT, _SHARE = 2 * 2**30, 4

# Bytes of pixels that a thread makes at a time where their size is known: enough for threads to seldom meet.
_TOGETHER = 2**22

# More threads than these wait for one another: on 16 cores, sixteen decode fewer JPEG files a second than eight.
_MOST_WORKERS = 8

_log = logging.getLogger(__name__)


def load(
    source: Source,
    *,
    resize: int | None = None,
    crop: int | Square | None = None,
    workers: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    progress: ProgressReport = tell_nobody,
) -> Images:
    """All images of a source, decoded by ``workers`` threads and brought to size as `resize_and_crop` does.

    Up to ``limit`` bytes of pixels stay in memory; 0 sends all to a file. With a ``folder``, the file stays there, and
    later calls for the same files and sizes map it again; the limit is 2 GiB unless told otherwise. Without, the file
    is a temporary one, and the limit a quarter of the memory that is free, if that is more.
    """
    count = workers if workers is not None else min(_MOST_WORKERS, _cores())
    if count < 1:
        raise InputError(f"{count} workers; expected at least 1")
    kept = _kept_file(source, folder, resize, crop)
    decoded = _open_file(kept, len(source), count) if kept is not None else None
    if decoded is None:
        start = time.perf_counter()
        most = limit if limit is not None else _limit(kept=folder is not None)
        decoded = _decode(source, resize, crop, count, PixelStore(most, kept, folder), progress)
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


def _limit(*, kept: bool) -> int:
    """Bytes of pixels that stay in memory unless told otherwise; fewer where a file is to be kept for others."""
    return _LEAST_LIMIT if kept else max(_LEAST_LIMIT, available_memory() // _SHARE)


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _kept_file(
    source: Source, folder: str | os.PathLike[str] | None, resize: int | None, crop: int | Square | None
) -> Path | None:
    """The file of a source whose images can be told from others without decoding them."""
    if folder is None or source.stamp is None:
        return None
    key = hashlib.blake2b(digest_size=16)
    key.update(f"{MAGIC!r}|{PIL.__version__}|{source.channels}|{resize}|{crop}|{len(source)}".encode())
    for i, name in enumerate(source.names):
        key.update(f"\n{name}|{int(source.ids[i])}|{source.stamp(i)}".encode("utf-8", "surrogateescape"))
    return Path(folder) / f"{key.hexdigest()}.pixels"


def _decode(
    source: Source,
    resize: int | None,
    crop: int | Square | None,
    workers: int,
    store: PixelStore,
    progress: ProgressReport,
) -> Pixels:
    shapes = np.empty((len(source), 3), dtype=np.int64)
    digests = np.empty((len(source), DIGEST_BYTES), dtype=np.uint8)

    def decoded(row: int) -> NDArray[np.uint8]:
        picture = source.read(row)
        with about(f"{source.name}, {source.names[row]}"):
            return _planes(resize_and_crop(picture, resize=resize, crop=crop), source.channels)

    def digested(row: int, levels: NDArray[np.uint8]) -> None:
        shapes[row] = levels.shape
        digests[row] = np.frombuffer(image_digest(levels), dtype=np.uint8)

    def work(row: int) -> NDArray[np.uint8]:
        levels = np.ascontiguousarray(decoded(row))
        digested(row, levels)
        return levels

    shape = known_shape(source, resize, crop)
    with store:
        if shape is None:
            with contextlib.closing(ahead(work, len(source), workers)) as images:
                for row, levels in enumerate(images):
                    store.append(levels)
                    progress(row + 1, len(source), READING)
            return store.finish(shapes, digests)
        size = math.prod(shape)
        store.reserve(len(source) * size)
        block = source.read if isinstance(source.read, BlockReader) and source.read.shape == shape else None
        together = max(1, min(_TOGETHER // size, len(source) // (4 * workers)))

        def work_on_many(part: int) -> int:
            first, last = part * together, min(len(source), (part + 1) * together)
            room = store.room(first * size, (last - first) * size)
            levels = room.reshape(last - first, *shape)
            if block is not None:
                block.fill(levels, first)
            for row in range(first, last):
                if block is None:
                    levels[row - first] = decoded(row)
                digested(row, levels[row - first])
            store.keep(first * size, room)
            return last

        with contextlib.closing(ahead(work_on_many, math.ceil(len(source) / together), workers)) as parts:
            for last in parts:
                progress(last, len(source), READING)
        return store.finish(shapes, digests)


def known_shape(source: Source, resize: int | None, crop: int | Square | None) -> tuple[int, int, int] | None:
    """The shape that all images will have; None where only decoding tells."""
    if crop is not None:
        side = crop.side if isinstance(crop, Square) else crop
        return (source.channels, side, side)
    if not isinstance(source.read, BlockReader):
        return None
    return source.read.shape if resize in (None, min(source.read.shape[1:])) else None


def _planes(picture: Image.Image, channels: int) -> NDArray[np.uint8]:
    if channels == 1 and picture.mode != "L":
        raise InputError(f"a picture of mode {picture.mode} among gray ones; expected mode L")
    levels = np.asarray(picture if channels == 1 or picture.mode == "RGB" else picture.convert("RGB"))
    return levels.reshape(*levels.shape[:2], channels).transpose(2, 0, 1)


def _open_file(path: Path, count: int, workers: int) -> Pixels | None:
    """What a finished file holds; None for one that is missing or damaged, which is then made anew."""
    stored = stored_pixels(path, count)
    if stored is None:
        return None
    stops = np.cumsum(stored.shapes.prod(axis=1)).tolist()

    def sound(row: int) -> bool:
        pixels = stored.pixels[stops[row - 1] if row else 0 : stops[row]]
        return bool(image_digest(pixels) == stored.digests[row].tobytes())

    return stored if all(ahead(sound, count, workers)) else None
