"""Pixels of each class in a file of predictions: pairs of classes of every row, true and said, and how many there are.

::

    {"image": "a.png", "condition": "fog@3", "truth": [0, 0, 1], "prediction": [0, 1, 1], "pixels": [900, 24, 76]}

This is the confusion matrix of an image without its zeros. Pixels that are truly of class 255 are left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.data.maps import VOID
from blemish.evaluation.answers import Column, Lists
from blemish.evaluation.info import TaskInfo
from blemish.tasks.prediction_files import Sheet
from blemish.tasks.segmentation import COLUMNS, MOST_CLASSES

_MOST_PIXELS = 2**31


def pixel_columns(sheet: Sheet, images: Sequence[str]) -> tuple[TaskInfo, dict[str, Column]]:
    """What is held of every row, whose ``images`` these are. The truth of an image is the same in all of its rows."""
    lists, counts = sheet.lists(tuple(COLUMNS))
    rows = np.repeat(np.arange(len(sheet)), counts)
    values = {}
    for name, most in zip(COLUMNS, (MOST_CLASSES, MOST_CLASSES, _MOST_PIXELS), strict=True):
        flat = sheet.flat(name, lists[name])
        if len(strange := np.flatnonzero((flat < 0) | (flat >= most) | (flat != np.round(flat)))):
            place = strange[0]
            raise InputError(
                f"{sheet.row(int(rows[place]))}: {flat[place]:g} in {name}; expected whole numbers below {most}"
            )
        values[name] = flat.astype(np.int64)
    counted = values["truth"] != VOID
    rows, values = rows[counted], {name: flat[counted] for name, flat in values.items()}
    if not len(rows):
        raise InputError(f"{sheet.name}: no pixels of any class but {VOID}; expected the numbers of classes")
    classes, kinds = np.unique(values["truth"], return_inverse=True)
    true = np.zeros((len(sheet), len(classes)), dtype=np.int64)
    np.add.at(true, (rows, kinds), values["pixels"])
    settings = {"truth": _same_truth(sheet, images, true, classes), "classes": classes.tolist()}
    lengths = np.bincount(rows, minlength=len(sheet))
    columns: dict[str, Column] = {name: Lists(flat.astype(np.int32), lengths) for name, flat in values.items()}
    return TaskInfo("segmentation", dict(COLUMNS), settings), columns


def _same_truth(sheet: Sheet, images: Sequence[str], true: NDArray[np.int64], classes: NDArray[np.int64]) -> str:
    """A digest of how many pixels of each image are of each class; refused where rows of an image differ."""
    first: dict[str, int] = {}
    for row, image in enumerate(images):
        if not np.array_equal(true[row], true[first.setdefault(image, row)]):
            raise InputError(
                f"{sheet.row(row)}: other numbers of true pixels than in row {first[image] + 1}, which is of the same "
                "image; expected the same truth under all conditions"
            )
    digest = hashlib.blake2b(classes.tobytes(), digest_size=16)
    for image in sorted(first):
        digest.update(image.encode("utf-8", "surrogatepass") + b"\0" + true[first[image]].tobytes())
    return digest.hexdigest()
