"""How small a difference can be told apart with so many images?"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.statistics import normal_quantile
from blemish.studies.audit.findings import Check, Finding

POWER = 0.8
LEVEL = 0.95

CORRELATION = 0.5
"""How strongly two models are taken to agree on which images are difficult."""


def smallest_difference(scores: NDArray[np.float64], *, images: int | None = None) -> float:
    """The difference between two models on the same images that is found four times out of five, as a rate.

    ``scores`` has each image's share of right answers over all conditions, with standard deviation s. With the
    correlation ρ between both models, a difference has the standard error s √(2 (1 − ρ) / n), and a two-sided test at
    95 % finds (1.96 + 0.84) times that with probability 80 %.

    >>> round(smallest_difference(np.array([0.0, 1.0] * 500)), 4)
    0.0443
    """
    count = images or len(scores)
    return _needed_errors() * float(scores.std()) * math.sqrt(2 * (1 - CORRELATION) / count)


def images_for(scores: NDArray[np.float64], difference: float) -> int:
    """How many images a difference, as a rate, needs.

    >>> images_for(np.array([0.0, 1.0] * 500), 0.01)
    19623
    """
    return math.ceil((_needed_errors() * float(scores.std()) / difference) ** 2 * 2 * (1 - CORRELATION))


def _needed_errors() -> float:
    return normal_quantile(LEVEL) + normal_quantile(2 * POWER - 1)


def check_precision(scores: NDArray[np.float64], difference: float | None, images: int, *, of: str) -> Check:
    """Are there enough images for a difference in points? ``of`` says what is averaged over them."""
    if difference is not None and not 0 < difference < 100:
        raise InputError(f"difference {difference:g}; expected points between 0 and 100, such as 1.5")
    if not scores.std():
        what = "right" if scores.all() else "wrong" if not scores.any() else "equally often right"
        return Check("precision", skipped=f"all {len(scores):,} images are {what}: how much they vary is not known")
    least = 100 * smallest_difference(scores, images=images)
    said = f"{images:,} images tell apart two models that differ by {least:.1f} points in {of}"
    if difference is None:
        return Check("precision", said)
    if least <= difference:
        return Check("precision", said)
    needed = images_for(scores, difference / 100)
    finding = Finding(
        "precision",
        f"too few images for a difference of {difference:g} points",
        f"{images:,} images tell apart two models that differ by {least:.1f} points or more in {of} (four times out "
        f"of five, at 95 %, if their errors correlate by {CORRELATION})",
        f"take about {needed:,} images, or do not claim such a difference",
        numbers={"images": float(images), "smallest": least, "asked": difference, "needed": float(needed)},
    )
    return Check("precision", said, (finding,))
