"""Labelled images out of an array file: pixels, or the bytes of encoded pictures one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from blemish.core.errors import InputError
from blemish.data.arrays import check_labels, read_arrays, read_labels, read_members
from blemish.data.pictures import decode_picture
from blemish.data.source import Source, check_unchanged, file_stamp

__all__ = ["array_source", "block_source"]

_ENCODED = ("bytes", "offsets", "labels")


def array_source(path: str | os.PathLike[str], labels: str | os.PathLike[str] | None = None) -> Source:
    """The images of a ``.npy`` or ``.npz`` file; an image's id and name are its position.

    Labels come from the ``.npz`` itself or from a file of their own. ``classes`` in a ``.npz`` names the classes. An
    ``.npz`` may also hold encoded pictures: ``bytes``, all files one after the other, and ``offsets``, N + 1 places
    where each begins and the last one ends.
    """
    found = read_members(path, (*_ENCODED, "classes"))
    classes = _class_names(os.fspath(path), found.get("classes"))
    if "bytes" in found:
        if labels is not None:
            found["labels"] = read_labels(labels)
        return _encoded_source(path, found, classes)
    data = read_arrays(path, labels=labels)
    if data.labels is None:
        raise InputError(
            f"{os.fspath(path)}: no labels; expected labels or y in an .npz file, or a file of labels beside it"
        )
    return block_source(path, data.images, data.labels, classes=classes)


def block_source(
    path: str | os.PathLike[str],
    images: NDArray[np.uint8],
    labels: NDArray[Any],
    *,
    start: int = 0,
    classes: tuple[str, ...] | None = None,
    name: str | None = None,
) -> Source:
    """Images as a source; they are what the file at ``path`` holds from ``start`` on."""
    count = len(images)
    gray = images.ndim == 3 or images.shape[-1] == 1
    whole = file_stamp(path)
    mapped = isinstance(images, np.memmap)

    def read(i: int) -> Image.Image:
        if mapped:  # what was read before cannot change any more; where a file got shorter, touching it ends all
            check_unchanged(path, whole)
        levels = np.asarray(images[i])
        return Image.fromarray(levels.reshape(levels.shape[:2]) if gray else levels)

    return Source(
        name=name or Path(path).stem,
        names=tuple(str(position) for position in range(count)),
        ids=np.arange(count, dtype=np.int64),
        labels=np.asarray(labels).astype(np.int64),
        read=read,
        classes=classes,
        channels=1 if gray else 3,
        stamp=_stamp(path, start),
    )


def _stamp(path: str | os.PathLike[str], start: int = 0) -> Callable[[int], str]:
    whole = file_stamp(path)  # once: the arrays are what the file held when it was opened
    return lambda i: f"{whole}{start + i}"


def _encoded_source(
    path: str | os.PathLike[str], found: dict[str, NDArray[Any]], classes: tuple[str, ...] | None
) -> Source:
    name = os.fspath(path)
    missing = [key for key in _ENCODED if key not in found]
    if missing:
        raise InputError(f"{name}: encoded pictures without {missing[0]}; expected {', '.join(_ENCODED)}")
    content, offsets = found["bytes"], found["offsets"]
    if content.dtype != np.uint8 or content.ndim != 1:
        raise InputError(f"{name}: bytes of type {content.dtype}, shape {content.shape}; expected one row of uint8")
    if not np.issubdtype(offsets.dtype, np.integer) or offsets.ndim != 1 or len(offsets) < 2:
        raise InputError(f"{name}: offsets of type {offsets.dtype}, shape {offsets.shape}; expected whole numbers")
    limits = offsets.astype(np.int64)
    if limits[0] < 0 or limits[-1] > len(content) or (np.diff(limits) < 0).any():
        raise InputError(f"{name}: offsets do not ascend from 0 to at most {len(content)}, the number of bytes")
    labels = check_labels(name, found["labels"], len(limits) - 1)

    def read(i: int) -> Image.Image:
        picture = content[limits[i] : limits[i + 1]].tobytes()
        return decode_picture(picture, f"{name}, picture {i}").convert("RGB")

    return Source(
        name=Path(path).stem,
        names=tuple(str(position) for position in range(len(labels))),
        ids=np.arange(len(labels), dtype=np.int64),
        labels=labels.astype(np.int64),
        read=read,
        classes=classes,
        stamp=_stamp(path),
    )


def _class_names(path: str, classes: NDArray[Any] | None) -> tuple[str, ...] | None:
    if classes is None:
        return None
    if classes.ndim != 1 or classes.dtype.kind not in "US":
        raise InputError(f"{path}: classes of type {classes.dtype}, shape {classes.shape}; expected a row of names")
    return tuple(name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in classes.tolist())
