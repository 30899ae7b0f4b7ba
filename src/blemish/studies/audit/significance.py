"""How likely chance alone is: exact paired tests of right and wrong answers, and what many tests at once need."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ALPHA = 0.005
"""How often a check may raise a false alarm, all its tests together: once in two hundred audits."""


def sign_test(gained: int, lost: int) -> float:
    """McNemar's exact test, one-sided: how likely so many of the answers that differ are gains, if chance decides.

    >>> [round(sign_test(gained, lost), 6) for gained, lost in ((5, 0), (0, 5), (0, 0))]
    [0.03125, 1.0, 1.0]
    """
    total = gained + lost
    terms = [
        math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1) - total * math.log(2)
        for k in range(gained, total + 1)
    ]
    top = max(terms)
    return min(1.0, math.exp(top) * math.fsum(math.exp(term - top) for term in terms))


def paired(better: NDArray[np.bool_], worse: NDArray[np.bool_]) -> float:
    """The sign test of two models, or conditions, on the same images."""
    return sign_test(int((better & ~worse).sum()), int((worse & ~better).sum()))


def paired_means(better: NDArray[np.float32], worse: NDArray[np.float32]) -> float:
    """How likely chance alone makes the mean of paired values that much larger, one-sided, for many pairs.

    >>> round(paired_means(np.array([1.0, 3.0] * 50), np.array([0.9, 3.0] * 50)), 12)
    0.0
    """
    difference = np.asarray(better, dtype=np.float64) - worse
    spread = float(difference.std())
    if spread == 0:
        return 1.0
    return 0.5 * math.erfc(float(difference.mean()) / spread * math.sqrt(len(difference) / 2))


def holm(values: Sequence[float], *, alpha: float = ALPHA) -> list[bool]:
    """Which of several tests are significant, so that the chance of any false alarm stays below α (Holm 1979).

    >>> holm([0.001, 0.2, 0.004], alpha=0.01)
    [True, False, True]
    """
    significant = [False] * len(values)
    for rank, index in enumerate(sorted(range(len(values)), key=lambda index: values[index])):
        if values[index] > alpha / (len(values) - rank):
            break
        significant[index] = True
    return significant


def fewest_gains(tests: int, *, alpha: float = ALPHA) -> int:
    """How many images more have to be right, and none less, before one of so many tests can be significant.

    >>> fewest_gains(1), fewest_gains(16)
    (8, 12)
    """
    return math.ceil(math.log2(max(1, tests) / alpha))
