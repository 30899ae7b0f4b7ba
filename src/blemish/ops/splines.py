"""Cubic B-splines: weights of their four taps, and the filter that makes them pass through the pixels."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.cache import cached
from blemish.ops.filters import border_index
from blemish.ops.linear import LinearMap

# The filter's weights fall by a factor of 3.7 with every pixel: further out they are below 1e-20.
_REACH = 36


def spline_weights(fraction: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The weights of the taps at −1, 0, 1 and 2 for positions this far behind a pixel.

    The last is what is left to 1, as in SciPy, so that results which lie midway between two levels are rounded alike.
    """
    t, z = fraction, 1 - fraction
    first = z * z * z / 6
    second = (t * t * (t - 2) * 3 + 4) / 6
    third = (z * z * (z - 2) * 3 + 4) / 6
    return first, second, third, 1 - first - second - third


def interpolating_matrix(size: int) -> Tensor:
    """From the pixels along a side to the coefficients of the spline through them, float64 (size, size).

    Beyond the border stands the mirror image without the edge.
    """
    spline = torch.zeros(size, size, dtype=torch.float64)
    row = torch.arange(size)
    for step, weight in ((-1, 1 / 6), (0, 4 / 6), (1, 1 / 6)):
        column = border_index(step, size + step, size, "reflect101")
        spline.index_put_((row, column), torch.full((size,), weight, dtype=torch.float64), accumulate=True)
    inverse: Tensor = torch.linalg.inv(spline)
    return inverse.where((row - row[:, None]).abs() <= _REACH, 0.0)


@cached()
def interpolating_map(size: int, device: torch.device) -> LinearMap:
    """`interpolating_matrix`, to be applied to the rows or columns of float64 images."""
    return LinearMap.of(interpolating_matrix(size)[None, None], device, torch.float64)


POLE = math.sqrt(3) - 2
"""Of the recursive filter: what is further away counts so much less, with the other sign, for each pixel."""


def spline_start(size: int) -> tuple[Tensor, NDArray[np.float64], float]:
    """Whose values, mirrored without the edge, begin the filter along a side, with which powers; and how it ends."""
    powers = np.array([POLE**n for n in range(_REACH)])
    return border_index(0, _REACH, size, "reflect101"), powers, POLE / (POLE * POLE - 1)


def spline_coefficients(values: Tensor) -> Tensor:
    """As `interpolating_map`, along the first axis and for values times 6, by the recursive filter; on a CPU."""
    size = len(values)
    if size == 1:
        return values / 6
    places, powers, end = spline_start(size)
    first = torch.zeros_like(values[0])
    for place, power in zip(places.tolist(), powers.tolist(), strict=True):
        first = first + values[place] * power
    values = values.clone()
    values[0] = first
    for n in range(1, size):
        values[n] += values[n - 1] * POLE
    values[-1] = (values[-1] + values[-2] * POLE) * end
    for n in range(size - 2, -1, -1):
        values[n] = (values[n + 1] - values[n]) * POLE
    return values
