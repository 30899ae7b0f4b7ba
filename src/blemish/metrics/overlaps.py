"""Mean intersection over union, from how many pixels of each class were taken for which in every image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.evaluation.answers import Answers

Array = NDArray[Any]


def areas_of(answers: Answers) -> NDArray[np.float64]:
    """For each image, and class of the truth, the pixels that are both, truly, and said to be of it: (N, 3 K).

    Means of these, over images or over any resample of them, are all that the numbers below need.
    """
    kinds = np.asarray(answers.task.settings["classes"], dtype=np.int64)
    columns = [answers.lists(name) for name in ("truth", "prediction", "pixels")]
    owners, pixels = columns[0].owners, columns[2].values.astype(np.float64)
    truth, said = (column.values.astype(np.int64) for column in columns[:2])
    out = np.zeros((len(answers), 3, len(kinds)))
    everything = np.ones(len(truth), dtype=np.bool_)
    for kind, labels, kept in ((0, truth, truth == said), (1, truth, everything), (2, said, np.isin(said, kinds))):
        np.add.at(out[:, kind], (owners[kept], np.searchsorted(kinds, labels[kept])), pixels[kept])
    return out.reshape(len(answers), -1)


def mean_iou(areas: Array) -> Array:
    """mIoU out of means of `areas_of` (…, 3 K): the mean over classes that are there or are said to be.

    >>> float(mean_iou(np.array([2.0, 1.0, 4.0, 2.0, 3.0, 3.0])))  # (2 / (4 + 3 − 2) + 1 / (2 + 3 − 1)) / 2
    0.325
    """
    both, true, said = np.split(np.asarray(areas, dtype=np.float64), 3, axis=-1)
    union = true + said - both
    there = union > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(there, both / np.where(there, union, 1), 0).sum(-1) / there.sum(-1))


def pixel_accuracy(areas: Array) -> Array:
    """The share of pixels that are said to be of their class."""
    both, true, _ = np.split(np.asarray(areas, dtype=np.float64), 3, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(both.sum(-1) / true.sum(-1))
