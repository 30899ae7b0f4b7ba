"""Means of errors per cell, with intervals that hold without the images: only the counts behind each cell are known.

Cells are conditions. A benchmark's number is a weighted sum of its cells' errors: of a mean error all weights are
equal, of an mCE those of a corruption are one over its baseline's errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate, normal_quantile

Weights = Mapping[str, float]
"""What an error rate under each condition is multiplied by."""


def equal_weights(conditions: list[str]) -> dict[str, float]:
    """Of the mean error in percent, with every corruption weighing the same.

    >>> equal_weights(["fog@1", "fog@2", "snow@1", "snow@2"])["fog@1"]
    25.0
    """
    groups = _groups(conditions)
    return {text: 100 / len(groups) / len(groups[_group(text)]) for text in conditions}


def mce_weights(conditions: list[str], baseline: Mapping[str, float]) -> dict[str, float]:
    """Of the mCE in percent, the mean over corruptions of Σ_s E_s / Σ_s E_s of the baseline (Hendrycks et al. 2019).

    >>> mce_weights(["fog@1", "fog@2"], {"fog@1": 0.25, "fog@2": 0.75})
    {'fog@1': 100.0, 'fog@2': 100.0}
    """
    if missing := [text for text in conditions if text not in baseline]:
        raise InputError(f"no errors of the baseline under {', '.join(missing[:3])}")
    groups = _groups(conditions)
    sums = {group: sum(baseline[text] for text in members) for group, members in groups.items()}
    if zero := [group for group, total in sums.items() if not total > 0]:
        raise InputError(f"the baseline makes no errors under {zero[0]}; expected some to divide by")
    return {text: 100 / len(groups) / sums[_group(text)] for text in conditions}


def weighted(errors: Mapping[str, float], weights: Weights) -> float:
    """The number itself, of error rates."""
    return sum(weight * errors[text] for text, weight in weights.items())


def interval_of_cells(errors: Mapping[str, float], weights: Weights, images: int, *, level: float = 0.95) -> Estimate:
    """The number with an interval that is too wide rather than too narrow.

    All cells are of the same images, so their errors rise and fall together, and nobody knows how closely. A sum's
    standard deviation is at most the sum of standard deviations, √(e (1 − e) / images) each: that is what is taken.
    """
    half = normal_quantile(level) * sum(w * math.sqrt(errors[t] * (1 - errors[t]) / images) for t, w in weights.items())
    value = weighted(errors, weights)
    return Estimate(value, value - half, value + half)


def interval_of_claim(value: float, weights: Weights, images: int, *, level: float = 0.95) -> Estimate:
    """The same where only the number is known: the cells are then taken to be alike, which makes it widest.

    With W the sum of weights and q = value / W their mean error, Σ w √(e (1 − e)) ≤ W √(q (1 − q)), because the root is
    concave.
    """
    total = sum(weights.values())
    share = value / total
    if not 0 <= share <= 1:
        raise InputError(f"{value:g} cannot be reached with any errors; expected 0 to {total:.4g}")
    half = normal_quantile(level) * total * math.sqrt(share * (1 - share) / images)
    return Estimate(value, value - half, value + half)


def _group(text: str) -> str:
    return text.rpartition("@")[0] or text


def _groups(conditions: list[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for text in conditions:
        groups.setdefault(_group(text), []).append(text)
    return groups
