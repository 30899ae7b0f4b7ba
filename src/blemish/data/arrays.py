"""Reading array files: N images, with or without labels, in one .npy or .npz file."""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from blemish.corruptions.base import MIN_SIDE
from blemish.types import InputError

__all__ = ["ARRAY_SUFFIXES", "ImageArray", "read_arrays"]

ARRAY_SUFFIXES = (".npy", ".npz")

_IMAGE_KEYS = ("images", "x", "data")
_LABEL_KEYS = ("labels", "y")


@dataclass(frozen=True)
class ImageArray:
    """Images as uint8 of shape (N, H, W, C) or (N, H, W), and N integer labels if there are any.

    The id of an image is its position.
    """

    images: NDArray[np.uint8]
    labels: NDArray[Any] | None = None


def read_arrays(path: str | os.PathLike[str], *, labels: str | os.PathLike[str] | None = None) -> ImageArray:
    """Images from a ``.npy`` file, which is mapped, not read, or from ``images``, ``x`` or ``data`` of a ``.npz``.

    Labels come from ``labels`` or ``y`` of the ``.npz``, or from a ``.npy`` file of their own.
    """
    name = os.fspath(path)
    found = _load(name)
    own_labels = None
    if isinstance(found, dict):
        images = _pick(found, _IMAGE_KEYS)
        if images is None:
            raise InputError(f"{name}: holds {', '.join(found) or 'nothing'}; expected one of {', '.join(_IMAGE_KEYS)}")
        own_labels = _pick(found, _LABEL_KEYS)
    else:
        images = found
    _check_images(name, images)
    if labels is not None:
        other = _load(os.fspath(labels))
        own_labels = _pick(other, _LABEL_KEYS) if isinstance(other, dict) else other
        if own_labels is None:
            raise InputError(f"{os.fspath(labels)}: no labels; expected one of {', '.join(_LABEL_KEYS)}")
    if own_labels is not None:
        own_labels = _check_labels(os.fspath(labels if labels is not None else path), own_labels, len(images))
    return ImageArray(images, own_labels)


def _load(name: str) -> NDArray[Any] | dict[str, NDArray[Any]]:
    if not Path(name).is_file():
        raise InputError(f"{name}: no such file")
    try:
        if not name.lower().endswith(".npz"):
            return cast(NDArray[Any], np.load(name, mmap_mode="r", allow_pickle=False))
        with Path(name).open("rb") as stream:
            found = np.load(stream, allow_pickle=False)
            if isinstance(found, np.ndarray):
                return found
            return _read_members(found)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise InputError(f"{name}: not a readable array file ({error})") from error


def _read_members(found: NpzFile) -> dict[str, NDArray[Any]]:
    """The arrays we know; of files without any, the names alone, for the message."""
    wanted = [key for key in found.files if key in (*_IMAGE_KEYS, *_LABEL_KEYS)]
    return {key: found[key] for key in wanted} or dict.fromkeys(found.files, np.empty(0))


def _pick(found: dict[str, NDArray[Any]], keys: tuple[str, ...]) -> NDArray[Any] | None:
    return next((found[key] for key in keys if key in found), None)


def _check_images(name: str, images: NDArray[Any]) -> None:
    shape = images.shape
    if images.dtype != np.uint8:
        raise InputError(f"{name}: images of type {images.dtype}; expected uint8")
    if not (images.ndim == 3 or (images.ndim == 4 and shape[-1] in (1, 3))):
        raise InputError(f"{name}: images of shape {shape}; expected (N, height, width, 3) or (N, height, width)")
    if images.ndim == 3 and shape[-1] in (1, 3):
        raise InputError(f"{name}: shape {shape} looks like one picture; expected a stack of them: array[None]")
    if len(images) == 0:
        raise InputError(f"{name}: no images in it (shape {shape})")
    if min(shape[1:3]) < MIN_SIDE:
        raise InputError(f"{name}: images of {shape[1]}×{shape[2]} pixels; expected at least {MIN_SIDE}×{MIN_SIDE}")


def _check_labels(name: str, labels: NDArray[Any], count: int) -> NDArray[Any]:
    if not np.issubdtype(labels.dtype, np.integer):
        raise InputError(f"{name}: labels of type {labels.dtype}; expected whole numbers")
    flat = np.array(labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels)
    if flat.shape != (count,):
        raise InputError(f"{name}: labels of shape {labels.shape} for {count} images; expected one per image")
    return flat
