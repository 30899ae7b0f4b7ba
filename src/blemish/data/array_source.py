"""Labelled images out of an array file: pixels, or the bytes of encoded pictures one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from blemish.core.errors import InputError
from blemish.data.arrays import check_labels, read_arrays, read_labels, read_members
from blemish.data.blocks import BlockReader
from blemish.data.pictures import decode_picture
from blemish.data.source import Source, check_unchanged, file_stamp

_ENCODED = ("bytes", "offsets", "labels")


def array_source(path: str | os.PathLike[str], labels: str | os.PathLike[str] | None = None) -> Source:
    """The images of a ``.npy`` or ``.npz`` file; an image's id and name are its position.

    Labels come from the ``.npz`` itself or from a file of their own. ``classes`` in a ``.npz`` names the classes. An
    ``.npz`` may also hold encoded pictures: ``bytes``, all files one after the other, and ``offsets``, N + 1 places
    where each begins and the last one ends.
    """
    members = read_members(path, (*_ENCODED, "classes"))
    classes = _class_names(os.fspath(path), members.get("classes"))
    if "bytes" in members:
        if labels is not None:
            members["labels"] = read_labels(labels)
        return _encoded_source(path, members, classes)
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
) -> Source:
    """Images as a source; they are what the file at ``path`` holds from ``start`` on."""
    gray = images.ndim == 3 or images.shape[-1] == 1
    stamp = file_stamp(path)

    def check() -> None:
        if isinstance(images, np.memmap):  # of a file that got shorter, touching what is missing ends the process
            check_unchanged(path, stamp)

    source = _numbered_source(path, labels, BlockReader(images, check=check), classes, start=start)
    return replace(source, channels=1) if gray else source


def _numbered_source(
    path: str | os.PathLike[str],
    labels: NDArray[Any],
    read: Callable[[int], Image.Image],
    classes: tuple[str, ...] | None,
    *,
    start: int = 0,
) -> Source:
    count = len(labels)
    stamp = file_stamp(path)  # once: the arrays are what the file held when it was opened
    return Source(
        name=Path(path).stem,
        names=tuple(map(str, range(count))),
        ids=np.arange(count, dtype=np.int64),
        labels=labels.astype(np.int64),
        read=read,
        classes=classes,
        stamp=lambda i: f"{stamp}{start + i}",
    )


def _encoded_source(
    path: str | os.PathLike[str], members: dict[str, NDArray[Any]], classes: tuple[str, ...] | None
) -> Source:
    name = os.fspath(path)
    for key in _ENCODED:
        if key not in members:
            raise InputError(f"{name}: encoded pictures without {key}; expected {', '.join(_ENCODED)}")
    content, offsets = members["bytes"], members["offsets"]
    if content.dtype != np.uint8 or content.ndim != 1:
        raise InputError(f"{name}: bytes of type {content.dtype}, shape {content.shape}; expected one row of uint8")
    if not np.issubdtype(offsets.dtype, np.integer) or offsets.ndim != 1 or len(offsets) < 2:
        raise InputError(f"{name}: offsets of type {offsets.dtype}, shape {offsets.shape}; expected whole numbers")
    limits = offsets.astype(np.int64)
    if limits[0] < 0 or limits[-1] > len(content) or (np.diff(limits) < 0).any():
        raise InputError(f"{name}: offsets do not ascend from 0 to at most {len(content)}, the number of bytes")

    def read(i: int) -> Image.Image:
        picture = content[limits[i] : limits[i + 1]].tobytes()
        return decode_picture(picture, f"{name}, picture {i}").convert("RGB")

    return _numbered_source(path, check_labels(name, members["labels"], len(limits) - 1), read, classes)


def _class_names(path: str, classes: NDArray[Any] | None) -> tuple[str, ...] | None:
    if classes is None:
        return None
    if classes.ndim != 1 or classes.dtype.kind not in "US":
        raise InputError(f"{path}: classes of type {classes.dtype}, shape {classes.shape}; expected a row of names")
    return tuple(name.decode(errors="replace") if isinstance(name, bytes) else str(name) for name in classes.tolist())
