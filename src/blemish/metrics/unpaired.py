"""Models of whom only numbers with intervals are known: which can be told apart all the same; and Pareto fronts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from blemish.core.statistics import Estimate, normal_quantile


def p_values_of_intervals(estimates: Sequence[Estimate], *, level: float = 0.95) -> NDArray[np.float64]:
    """p-values of all pairs from nothing but intervals, as if models had answered different images.

    Models that answer the same images agree on most of them, which makes differences surer than this: what is told
    apart so is so, and more might be. An interval of no width is none, and such a model is told apart from nobody.
    """
    middle = np.array([estimate.value for estimate in estimates])
    spread = np.array([estimate.width for estimate in estimates]) / (2 * normal_quantile(level))
    known = spread > 0
    deviation = np.hypot(spread[:, None], spread[None, :])
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.abs(middle[:, None] - middle[None, :]) / deviation
    # Twice the tail of the normal law beyond the distance.
    table = torch.erfc(torch.from_numpy(np.nan_to_num(distance)) / 2**0.5).numpy()
    return np.where(known[:, None] & known[None, :], table, 1.0)


def pareto(points: Sequence[Sequence[float | None]]) -> list[bool]:
    """Which points no other beats: as low in everything, and lower in something.

    A point with a number missing is not on the front, and beats none.

    >>> pareto([[1, 5], [2, 2], [3, 3], [2, None]])
    [True, True, False, False]
    """
    whole = [index for index, point in enumerate(points) if None not in point]
    on_front = [False] * len(points)
    if whole:
        table = np.array([points[index] for index in whole], dtype=np.float64)
        for index, row in zip(whole, table, strict=True):
            beaten = ((table <= row).all(axis=1) & (table < row).any(axis=1)).any()
            on_front[index] = not beaten
    return on_front
