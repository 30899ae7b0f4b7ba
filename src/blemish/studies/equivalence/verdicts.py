"""Verdicts on differences: equivalent within a margin, different, or undecided; and the intervals they rest on.

A number is *equivalent* where its interval lies within ± a margin (two one-sided tests; Schuirmann 1987). It is
*different* where it exceeds the margin and an interval widened for the number of comparisons (Bonferroni) leaves out 0.
Otherwise there are too few images to tell. That all of many numbers are equivalent needs no widening: each has to be.
Copies with the same pixels need none of this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate, check_level, estimate_mean, normal_quantile
from blemish.metrics.formulas import Array

FEWEST = 30
"""From so many images on, means have intervals."""


class Verdict(Enum):
    """What a comparison came to."""

    SAME = "same pixels"
    EQUIVALENT = "equivalent"
    DIFFERENT = "different"
    UNDECIDED = "undecided"


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """Different if any is, equivalent if all are, else undecided."""
    if Verdict.DIFFERENT in verdicts:
        return Verdict.DIFFERENT
    if not verdicts or Verdict.UNDECIDED in verdicts:
        return Verdict.UNDECIDED
    return Verdict.SAME if set(verdicts) == {Verdict.SAME} else Verdict.EQUIVALENT


def judge(difference: Estimate, widened: Estimate, margin: float) -> Verdict:
    """The verdict on a difference, by its interval and by that widened for the number of comparisons."""
    if -margin <= difference.low and difference.high <= margin:
        return Verdict.EQUIVALENT
    if abs(difference.value) > margin and (widened.low > 0 or widened.high < 0):
        return Verdict.DIFFERENT
    return Verdict.UNDECIDED


def judge_excess(excess: Estimate, widened: Estimate, margin: float) -> Verdict:
    """The verdict on what one distance exceeds another by; one that is smaller is no difference, however small."""
    if excess.high <= margin:
        return Verdict.EQUIVALENT
    return Verdict.DIFFERENT if excess.value > margin and widened.low > 0 else Verdict.UNDECIDED


def mean_interval(values: Array, *, level: float = 0.95) -> Estimate:
    """A mean with Student's interval; without one (−∞ … ∞) where there are fewer than `FEWEST` values."""
    if len(values) < FEWEST:
        check_level(level)
        return Estimate(float(np.mean(values)), -math.inf, math.inf)
    return estimate_mean(values, level=level)


def paired_interval(only_first: int, only_second: int, images: int, *, level: float = 0.95) -> Estimate:
    """The score interval of the difference of two accuracies on the same images (Tango 1998), first less second.

    Unlike a bootstrap it holds, too, where few images tell the two apart, or none.

    >>> interval = paired_interval(12, 2, 50)
    >>> round(interval.low, 3), round(interval.high, 3)
    (0.061, 0.345)
    """
    check_level(level)
    if min(only_first, only_second) < 0 or only_first + only_second > images or images < 1:
        raise InputError(f"{only_first} and {only_second} of {images} images; expected parts of them")
    z = normal_quantile(level)

    def score(gap: float) -> float:
        """Standard deviations between what was seen and a gap, with the nuisance parameter at its best."""
        b = (2 * images - only_first + only_second) * gap - only_first - only_second
        c = -only_second * gap * (1 - gap)
        rest = (math.sqrt(max(0.0, b * b - 8 * images * c)) - b) / (4 * images)
        variance = images * (2 * rest + gap * (1 - gap))
        distance = only_first - only_second - images * gap
        if variance <= 0:
            return math.copysign(math.inf, distance) if distance else 0.0
        return distance / math.sqrt(variance)

    value = (only_first - only_second) / images
    return Estimate(value, _root(score, -1.0, value, z), _root(score, value, 1.0, -z))


def bounded_interval(values: Array, *, level: float = 0.95) -> Estimate:
    """The score interval of the mean of values from −1 to 1; unlike a bootstrap it holds where they are all the same.

    A supposed mean is judged by the variance under the likeliest weights that have it, of the values seen and of ±1
    (empirical likelihood; Owen 1988). It is `paired_interval` where all are −1, 0 or 1, and ± z²/(n + z²) for n zeros.

    >>> round(bounded_interval(np.zeros(30)).high, 4)
    0.1135
    """
    check_level(level)
    seen, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    if not len(seen) or not np.abs(seen).max() <= 1:
        raise InputError(f"{len(values)} values; expected at least one, and all from -1 to 1")
    images, mean = int(counts.sum()), float(np.average(seen, weights=counts))
    z = normal_quantile(level)

    def score(gap: float) -> float:
        variance = _variance(seen, counts / images, gap, 1.0 if gap > mean else -1.0)
        distance = mean - gap
        if variance <= 0:
            return math.copysign(math.inf, distance) if distance else 0.0
        return distance / math.sqrt(variance / images)

    return Estimate(mean, _root(score, -1.0, mean, z), _root(score, mean, 1.0, -z))


def _variance(seen: Array, shares: Array, gap: float, end: float) -> float:
    """The variance around ``gap`` under the likeliest weights of ``seen`` and ``end`` whose mean is ``gap``."""
    moved, reach = end * (seen - gap), 1 - end * gap
    if reach <= 0:
        return 0.0

    def weights(tilt: float) -> Array:
        return shares / np.maximum(1 - tilt * moved, 1e-300)

    # A stronger tilt than 1 / reach would give the end a negative weight; at it, the end has what the others leave.
    tilt = _root(lambda tilt: -float(weights(tilt) @ moved), 0.0, 1 / reach, 0.0)
    tilted = weights(tilt)
    return float(tilted @ moved**2) + max(0.0, 1 - float(tilted.sum())) * reach**2


def _root(score: Callable[[float], float], low: float, high: float, wanted: float) -> float:
    """Where a falling function takes a value between two ends."""
    for _ in range(60):
        middle = (low + high) / 2
        if score(middle) > wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2
