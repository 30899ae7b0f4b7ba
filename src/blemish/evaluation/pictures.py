"""A few of the images, kept beside the records so that a report can show what the model got wrong."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.types import Square
from blemish.data.arrays import read_members
from blemish.data.images import Images
from blemish.evaluation.pixels import centre
from blemish.evaluation.runs import PICTURES, Run

KEPT = 16


def worst_first(clean: NDArray[np.bool_], corrupted: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Images in the order of how many conditions (columns) they fail; those that fail when clean come last.

    >>> worst_first(np.array([True, True, False]), np.array([[1, 1], [0, 1], [0, 0]], dtype=bool)).tolist()
    [1, 0, 2]
    """
    failures = (~corrupted).sum(1)
    return np.lexsort((-failures, ~clean)).astype(np.int64)


def save_pictures(run: Run, stages: Sequence[Images], *, crop: int | Square | None = None) -> None:
    """Write the worst-hit images and some others, all of the shape that most images have, cut as ``crop`` says."""
    path = run.folder / PICTURES
    conditions = [condition for condition in run.conditions if condition.steps and not condition.is_sequence]
    mark = run.info.data.fingerprint
    if _mark(path) == mark or not all(run.finished(condition) for condition in run.conditions):
        return
    names = np.concatenate([np.asarray(images.names, dtype=np.str_) for images in stages])
    ordinary = np.concatenate([_most_common_shape(images) for images in stages])
    if conditions:
        correct = np.stack([run.correct(condition) for condition in conditions], axis=1)
        order = worst_first(run.correct(run.conditions[0]), correct)
    else:
        order = np.arange(len(names))
    order = order[ordinary[order]]
    others = order[KEPT // 2 :]
    sample = others[np.linspace(0, len(others) - 1, min(len(others), KEPT - KEPT // 2)).astype(np.int64)]
    chosen = [int(row) for row in dict.fromkeys([*order[: KEPT // 2].tolist(), *sample.tolist()])]
    entries: dict[str, Any] = {
        "data": np.asarray(mark),
        "names": names[chosen],
        "images": np.stack([_pixels(stages, row, crop) for row in chosen]),
        "labels": np.concatenate([images.labels for images in stages])[chosen],
        "ids": np.concatenate([images.ids for images in stages])[chosen],
    }
    if stages[0].classes is not None:
        entries["classes"] = np.asarray(stages[0].classes, dtype=np.str_)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **entries)
    write_bytes(path, buffer.getvalue(), destination=run.folder)


def _mark(path: Path) -> str | None:
    """The data that a file's pictures are of."""
    try:
        return str(read_members(path, ("data",))["data"])
    except (InputError, KeyError):
        return None


def _most_common_shape(images: Images) -> NDArray[np.bool_]:
    kept = np.zeros(len(images), dtype=np.bool_)
    kept[max(images.by_shape(), key=len)] = True
    return kept


def _pixels(stages: Sequence[Images], row: int, crop: int | Square | None) -> NDArray[np.uint8]:
    for images in stages:
        if row < len(images):
            image = images.batch([row])
            image = image if crop is None else centre(image, crop)
            pixels: NDArray[np.uint8] = image[0].permute(1, 2, 0).numpy()
            return pixels
        row -= len(images)
    raise IndexError(row)
