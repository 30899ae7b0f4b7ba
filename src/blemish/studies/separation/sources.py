"""Points with labels from files: images or feature vectors in arrays, or pictures in class folders."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.reading import is_folder
from blemish.core.typed import Between
from blemish.data.arrays import ARRAY_SUFFIXES, is_archive, member_names, read_arrays, read_members, read_npy
from blemish.data.pictures import list_pictures, read_picture, resize_and_crop
from blemish.studies.separation.contradictions import without_contradictions
from blemish.studies.separation.exact import Label
from blemish.studies.separation.search import Progress

_POINT_KEYS = ("images", "x", "data", "features")
_LABEL_KEYS = ("labels", "y")


@dataclass(frozen=True)
class LabelledPoints:
    """Points, one label each, and the files they came from where there are any."""

    points: NDArray[Any]
    labels: NDArray[Any]
    names: tuple[str, ...] | None = None

    @property
    def pictures(self) -> bool:
        """Whether the points can be shown as pictures."""
        shape = self.points.shape
        return self.points.dtype == np.uint8 and (len(shape) == 3 or (len(shape) == 4 and shape[-1] in (1, 3)))


@dataclass(frozen=True)
class LeftOut:
    """A point that is not used: its position in the data, its label, and its file where it has one."""

    point: Annotated[int, Between(0)]
    label: Label
    name: str | None = None

    def __str__(self) -> str:
        return f"{self.point if self.name is None else self.name} ({self.label})"


def leave_out_contradictions(points: LabelledPoints) -> tuple[LabelledPoints, list[list[LeftOut]]]:
    """The points without those that are equal but have different labels, and these, equal ones together."""
    kept, groups = without_contradictions(points.points, points.labels)
    if not groups:
        return points, []
    labels, names = points.labels.tolist(), points.names or (None,) * len(points.labels)
    left_out = [[LeftOut(row, labels[row], names[row]) for row in rows] for rows in groups]
    if len(set(points.labels[kept].tolist())) < 2:
        example = " and ".join(map(str, left_out[0][:2]))
        raise InputError(
            f"without equal points of different labels, such as {example}, fewer than two classes are left; "
            "expected points of at least two"
        )
    files = None if points.names is None else tuple(points.names[row] for row in kept)
    return LabelledPoints(points.points[kept], points.labels[kept], files), left_out


def read_points(
    path: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | None = None,
    resize: int | None = None,
    crop: int | None = None,
    progress: Progress | None = None,
) -> LabelledPoints:
    """Points from a ``.npz`` or ``.npy`` file, images or feature vectors, or from class folders of pictures.

    Labels are ``labels`` or ``y`` of the ``.npz``, a file of their own, or the first folder of each picture. Pictures
    must be of one size; ``resize`` and ``crop`` make them so. ``progress`` is told how many are read, of how many.
    """
    name = os.fspath(path)
    if is_folder(name):
        if labels is not None:
            raise InputError(f"{name}: labels of pictures are their folders; expected no labels file")
        return _read_folder(name, resize, crop, progress)
    if not name.lower().endswith(ARRAY_SUFFIXES):
        raise InputError(f"{name}: expected a folder, a .npy or a .npz file")
    if resize is not None or crop is not None:
        raise InputError(f"{name}: resize and crop are for folders of pictures")
    points = _member(name, _POINT_KEYS, "points")
    if points.dtype == np.uint8 and points.ndim in (3, 4):
        arrays = read_arrays(name, labels=labels)
        points, targets = arrays.images, arrays.labels
    else:
        targets = _member(name if labels is None else os.fspath(labels), _LABEL_KEYS, "labels")
    if targets is None:
        raise InputError(f"{name}: no labels; expected labels or y in the file, or a labels file")
    if targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    return LabelledPoints(points, targets)


def _member(name: str, keys: tuple[str, ...], what: str) -> NDArray[Any]:
    if not is_archive(name):
        array = read_npy(name)
        if what == "labels" and keys == _LABEL_KEYS and array.ndim > 2:
            raise InputError(f"{name}: no labels in it; expected a .npz with labels or y, or a labels file")
        return array
    held = member_names(name)
    key = next((key for key in keys if key in held), None)
    if key is None:
        raise InputError(
            f"{name}: holds {', '.join(held) or 'nothing'}; expected {what} under one of {', '.join(keys)}"
        )
    return read_members(name, (key,))[key]


def _read_folder(root: str, resize: int | None, crop: int | None, progress: Progress | None) -> LabelledPoints:
    names = list_pictures(root)
    stray = next((name for name in names if "/" not in name), None)
    if stray is not None:
        raise InputError(f"{root}: {stray} is in no class folder; expected <class>/<file>")
    images: NDArray[np.uint8] | None = None
    for k, name in enumerate(names):
        picture = resize_and_crop(read_picture(Path(root, name)), resize=resize, crop=crop).convert("RGB")
        if images is None:
            images = np.empty((len(names), picture.height, picture.width, 3), np.uint8)
            first = picture.size
        if picture.size != first:
            sizes = f"{picture.width}×{picture.height} pixels, but {names[0]} has {first[0]}×{first[1]}"
            raise InputError(f"{name}: {sizes}; expected one size: give resize and crop")
        images[k] = np.asarray(picture)
        if progress is not None:
            progress(k + 1, len(names))
    assert images is not None
    return LabelledPoints(images, np.array([name.split("/")[0] for name in names]), tuple(names))
