"""Several labels for an image: which of them a model told rightly, as the columns that errors are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.evaluation.answers import Answers


def label_hits(said: ArrayLike, true: ArrayLike) -> NDArray[np.float32]:
    """`class_hits` where each of K labels has two classes, yes and no, of (N, K) truth values: (N, 4 K).

    The balanced accuracy of their means is the mean recall over all 2 K, and so the mean over labels of the balanced
    accuracy of each. A class of a label that no image is of is left out.

    >>> from blemish.metrics.formulas import balanced_accuracy
    >>> float(balanced_accuracy(label_hits([[1, 0], [1, 1]], [[1, 0], [0, 1]]).mean(0)))  # (1 + 0 + 1 + 1) / 4
    0.75
    """
    told, truth = np.asarray(said, dtype=np.bool_), np.asarray(true, dtype=np.bool_)
    member = np.concatenate([truth, ~truth], axis=1)
    right = np.concatenate([truth & told, ~truth & ~told], axis=1)
    return np.concatenate([right, member], axis=1, dtype=np.float32)


def label_outcomes(answers: Answers) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """The share of its labels that was told rightly for each image, and what balanced errors are made of."""
    settings = answers.task.settings
    shape = (len(answers), int(settings["labels"]))
    true = answers.lists("truth").values.reshape(shape)
    said = answers.lists("probability").values.reshape(shape) > float(settings["threshold"])
    return (said == true).mean(axis=1), label_hits(said, true)
