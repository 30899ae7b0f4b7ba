"""Reading array files: N images, with or without labels, in one .npy or .npz file."""

from __future__ import annotations

import math
import os
import tokenize
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError, refused
from blemish.core.memory import check_fits
from blemish.core.reading import open_regular
from blemish.corruptions.inputs import MIN_SIDE

ARRAY_SUFFIXES = (".npy", ".npz")

# The last are those of MedMNIST's files, which hold other images for training.
_IMAGE_KEYS = ("images", "x", "data", "test_images")
_LABEL_KEYS = ("labels", "y", "test_labels")


@dataclass(frozen=True)
class ImageArray:
    """Images as uint8 of shape (N, H, W, C) or (N, H, W), and N integer labels if there are any.

    The id of an image is its position.
    """

    images: NDArray[np.uint8]
    labels: NDArray[Any] | None = None


def read_arrays(path: str | os.PathLike[str], *, labels: str | os.PathLike[str] | None = None) -> ImageArray:
    """Images from a ``.npy`` file, which is mapped, not read, or from ``images``, ``x`` or ``data`` of a ``.npz``.

    Labels come from ``labels`` or ``y`` of the ``.npz``, or from a ``.npy`` file of their own. Of MedMNIST's files, the
    test images and their labels are taken.
    """
    images, own_labels = _read(os.fspath(path))
    if labels is not None:
        own_labels = read_labels(labels)
    if own_labels is not None:
        own_labels = check_labels(os.fspath(labels if labels is not None else path), own_labels, len(images))
    return ImageArray(images, own_labels)


def _read(name: str) -> tuple[NDArray[np.uint8], NDArray[Any] | None]:
    """The images of a file, and the labels in it, which are still to be checked."""
    if not is_archive(name):
        images = read_npy(name)
        check_images(name, images)
        return images, None
    members = read_members(name, (*_IMAGE_KEYS, *_LABEL_KEYS))
    picked = _pick(members, _IMAGE_KEYS)
    if picked is None:
        held = ", ".join(member_names(name)) or "nothing"
        raise InputError(f"{name}: holds {held}; expected one of {', '.join(_IMAGE_KEYS)}")
    check_images(name, picked)
    return picked, _pick(members, _LABEL_KEYS)


def read_label_rows(
    path: str | os.PathLike[str], *, labels: str | os.PathLike[str] | None = None
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Images as `read_arrays` has them, and labels of any shape; they are still to be checked."""
    images, own_labels = _read(os.fspath(path))
    if labels is not None:
        own_labels = read_labels(labels)
    if own_labels is None:
        raise InputError(f"{os.fspath(path)}: no labels; expected one of {', '.join(_LABEL_KEYS)}")
    return images, own_labels


def read_labels(path: str | os.PathLike[str]) -> NDArray[Any]:
    """Labels from a file of their own; they are still to be checked."""
    name = os.fspath(path)
    if not is_archive(name):
        return read_npy(name)
    labels = _pick(read_members(name, _LABEL_KEYS), _LABEL_KEYS)
    if labels is None:
        raise InputError(f"{name}: no labels; expected one of {', '.join(_LABEL_KEYS)}")
    return labels


_UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,  # encrypted members, unknown compression, headers that are nested too deeply
    TypeError,
    MemoryError,
    OverflowError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,  # of headers, which are Python
)


def is_archive(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an archive of arrays; its beginning says so, whatever its name."""
    with open_regular(path) as stream:
        return stream.read(2) == b"PK"


def read_npy(path: str | os.PathLike[str]) -> NDArray[Any]:
    """The array of a ``.npy`` file, mapped, not read."""
    name = os.fspath(path)
    if is_archive(name):
        raise InputError(f"{name}: an archive of arrays; expected a single array")
    with refused(f"{name}: not a readable array file", *_UNREADABLE):
        with open_regular(name) as stream:
            _claimed_bytes(name, stream, os.fstat(stream.fileno()).st_size)
        return cast(NDArray[Any], np.load(name, mmap_mode="r", allow_pickle=False))


def read_members(
    path: str | os.PathLike[str], keys: tuple[str, ...], *, most: int | None = None
) -> dict[str, NDArray[Any]]:
    """Those of the named arrays that a ``.npz`` file holds; more than ``most`` bytes, or than fit, are refused."""
    name = os.fspath(path)
    if not is_archive(name):
        return {}
    with refused(f"{name}: not a readable array file", *_UNREADABLE), zipfile.ZipFile(name) as archive:
        members = {key: f"{key}.npy" for key in keys if f"{key}.npy" in archive.namelist()}
        claimed = 0
        # The headers come first: what would not fit must be known before anything is unpacked.
        for member in members.values():
            with archive.open(member) as stream:
                claimed += _claimed_bytes(f"{name}: {member}", stream, archive.getinfo(member).file_size)
        check_fits(name, claimed)
        if most is not None and claimed > most:
            raise InputError(f"{name}: unpacks to {claimed:,} bytes; expected at most {most:,}")
        arrays = {}
        for key, member in members.items():
            with archive.open(member) as stream:
                arrays[key] = np.lib.format.read_array(stream, allow_pickle=False)
        return arrays


def member_names(path: str | os.PathLike[str]) -> list[str]:
    """The names of the arrays that a ``.npz`` file holds."""
    name = os.fspath(path)
    if not is_archive(name):
        raise InputError(f"{name}: not a readable .npz file")
    with refused(f"{name}: not a readable array file", *_UNREADABLE), zipfile.ZipFile(name) as archive:
        return [member.removesuffix(".npy") for member in archive.namelist() if member.endswith(".npy")]


def _claimed_bytes(name: str, stream: IO[bytes], available: int) -> int:
    """The size of an array by its header, if there are as many bytes as that."""
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"array format {version}; expected 1.0 or 2.0")
    shape, _, dtype = readers[version](stream)
    if any(isinstance(side, bool) for side in shape):  # to Python, True is a whole number
        raise ValueError(f"an array of shape {shape}")
    size = math.prod(shape) * int(dtype.itemsize)
    if min(shape, default=0) < 0 or (not dtype.hasobject and stream.tell() + size > available):
        raise ValueError(f"{name} claims an array of shape {shape}, which is more than it holds")
    return size


def _pick(members: dict[str, NDArray[Any]], keys: tuple[str, ...]) -> NDArray[Any] | None:
    return next((members[key] for key in keys if key in members), None)


def check_images(name: str, images: NDArray[Any]) -> None:
    """Refuse an array that is no stack of 8-bit images, gray or RGB."""
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


def check_labels(name: str, labels: NDArray[Any], count: int) -> NDArray[Any]:
    """Labels as one whole number per image; a column of them is one, too."""
    if not np.issubdtype(labels.dtype, np.integer):
        raise InputError(f"{name}: labels of type {labels.dtype}; expected whole numbers")
    flat = np.array(labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels)
    if flat.shape != (count,):
        raise InputError(
            f"{name}: labels of shape {labels.shape} for {count} images; expected one per image{_several(labels)}"
        )
    return flat


def _several(labels: NDArray[Any]) -> str:
    return ", or --task multilabel where an image has several" if labels.ndim == 2 else ""
