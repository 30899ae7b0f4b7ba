"""Pillow's bicubic resizing of 8-bit images, bit for bit: whole-number weights, one pass per axis, rounded to levels.

Sums of whole numbers below 2⁵³ are exact in float64, so that no order of summation can matter.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from blemish.ops.cache import cached

__all__ = ["resized"]

# Pillow keeps weights as whole multiples of 2⁻²².
_ONE = 2**22


def resized(levels: Tensor, height: int, width: int) -> Tensor:
    """Uint8 images (…, H, W) of another size, uint8."""
    values = levels.to(torch.float64)
    across = _rounded(values @ _weights(levels.shape[-1], width, str(levels.device)).T)
    return _rounded(_weights(levels.shape[-2], height, str(levels.device)) @ across).to(torch.uint8)


def _rounded(sums: Tensor) -> Tensor:
    return sums.add_(_ONE / 2).div_(_ONE).floor_().clamp_(0, 255)


def _cubic(x: np.float64) -> float:
    x = abs(x)
    if x < 1:
        return float((1.5 * x - 2.5) * x * x + 1)
    return float(((-0.5 * x + 2.5) * x - 4) * x + 2) if x < 2 else 0.0


@cached(mebibytes=16)
def _weights(size: int, wanted: int, device: str) -> Tensor:
    """What each of ``size`` pixels contributes to each of ``wanted``, (wanted, size); wider when it shrinks."""
    scale = size / wanted
    stretch = max(scale, 1.0)
    weights = np.zeros((wanted, size))
    for row in range(wanted):
        centre = (row + 0.5) * scale
        first = max(0, int(centre - 2 * stretch + 0.5))
        last = min(size, int(centre + 2 * stretch + 0.5))
        taps = np.array([_cubic(np.float64((i - centre + 0.5) / stretch)) for i in range(first, last)])
        taps /= math.fsum(taps)
        weights[row, first:last] = np.trunc(taps * _ONE + np.where(taps < 0, -0.5, 0.5))
    return torch.from_numpy(weights).to(device)
