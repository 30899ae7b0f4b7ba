"""Trained classifiers as MSCR sees them: functions from noisy points to labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.errors import InputError
from blemish.evaluation.measure import classify, count_outputs
from blemish.models.base import Classifier
from blemish.studies.separation.experiment import Predict
from blemish.studies.separation.noise import as_unit_floats


def from_classifier(classifier: Classifier, *, clip: bool, batch: int = 256) -> Predict:
    """A function from float images in [0, 1], or just beyond where noise is not clipped, to class numbers.

    The classifier's own preprocessing is applied to the noisy values as they are, without rounding to 8 bits.
    """
    if classifier.preprocessing.levels and not clip:
        raise InputError(f"model {classifier.name} takes 8-bit levels, which noise may leave; expected clip=True")

    def predict(points: NDArray[Any]) -> NDArray[Any]:
        images = _as_images(points, classifier)
        return classify(classifier, (_values(images[i : i + batch]) for i in range(0, len(images), batch)))

    return predict


def classes_of(classifier: Classifier, points: NDArray[Any]) -> int:
    """How many classes a classifier of such points tells apart; found out with the first of them."""
    return count_outputs(classifier, _values(_as_images(as_unit_floats(points[:1]), classifier)))


def _as_images(points: NDArray[Any], classifier: Classifier) -> NDArray[Any]:
    images = points[..., None] if points.ndim == 3 else points
    if images.ndim != 4 or images.shape[-1] not in (1, 3):
        raise InputError(f"points of shape {points.shape}; model {classifier.name} expects (N, H, W) or (N, H, W, 3)")
    return images


def _values(images: NDArray[Any]) -> Tensor:
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2), dtype=np.float32)
    return torch.from_numpy(planes * np.float32(255))
