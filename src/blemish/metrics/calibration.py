"""Whether confidences can be believed: reliability bins and the expected calibration error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.core.errors import InputError
from blemish.metrics.formulas import Array

BINS = 15
"""Bins of equal width between 0 and 1; a confidence on an edge belongs to the bin below."""

FEW = 10
"""A bin with fewer images than this says little: its accuracy is mostly chance."""


@dataclass(frozen=True)
class Reliability:
    """Images by confidence: the bins' edges, how many images each holds, their mean confidence and accuracy.

    Confidence and accuracy of an empty bin are 0.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]


def _bins(confidence: Array, bins: int) -> Array:
    if confidence.size and not (confidence.min() >= 0 and confidence.max() <= 1.001):
        raise InputError(f"confidences in {confidence.min():g} … {confidence.max():g}; expected 0 … 1")
    return np.asarray(np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1))


def reliability(confidence: ArrayLike, correct: ArrayLike, *, bins: int = BINS) -> Reliability:
    """What a reliability diagram shows.

    >>> diagram = reliability([0.9, 0.8, 0.3], [True, False, False], bins=2)
    >>> diagram.counts.tolist(), diagram.accuracy.tolist()
    ([1, 2], [0.0, 0.5])
    """
    values, outcomes = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    index = _bins(values, bins)
    counts = np.bincount(index, minlength=bins)
    some = np.maximum(counts, 1)
    return Reliability(
        edges=np.linspace(0, 1, bins + 1),
        counts=counts.astype(np.int64),
        confidence=np.bincount(index, values, minlength=bins) / some,
        accuracy=np.bincount(index, outcomes, minlength=bins) / some,
    )


def pooled(parts: Sequence[Reliability]) -> Reliability:
    """The bins of several conditions together."""
    counts = np.sum([part.counts for part in parts], axis=0)
    some = np.maximum(counts, 1)
    return Reliability(
        edges=parts[0].edges,
        counts=counts,
        confidence=np.sum([part.counts * part.confidence for part in parts], axis=0) / some,
        accuracy=np.sum([part.counts * part.accuracy for part in parts], axis=0) / some,
    )


def bin_gaps(confidence: ArrayLike, correct: ArrayLike, *, bins: int = BINS) -> NDArray[Any]:
    """(images, bins): correct less confidence in the image's own bin, 0 in others. Its mean is all that ECE needs."""
    values, outcomes = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    gaps = np.zeros((len(values), bins))
    gaps[np.arange(len(values)), _bins(values, bins)] = outcomes - values
    return gaps


def error_of_gaps(mean_gaps: ArrayLike) -> Array:
    """ECE out of the means over images of `bin_gaps`, (…, bins): the sum of their sizes."""
    return np.asarray(np.abs(np.asarray(mean_gaps)).sum(-1))


def calibration_error(confidence: ArrayLike, correct: ArrayLike, *, bins: int = BINS) -> float:
    """ECE = Σ_b n_b/n · |accuracy_b − confidence_b| (Guo et al. 2017), 15 bins of equal width unless told otherwise.

    >>> round(calibration_error([0.9, 0.9], [True, False]), 6)
    0.4
    """
    return float(error_of_gaps(bin_gaps(confidence, correct, bins=bins).mean(0)))
