"""The mean over a square, whose side need not be a whole number of pixels."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from blemish.ops.filters import pad
from blemish.ops.fused import fused
from blemish.ops.transfer import to_device

# The number by which kernels know the border.
_REFLECT101 = 2


def box_blur(images: Tensor, radius: Tensor, *, largest: float) -> Tensor:
    """Means over squares of side 2 · radius[b] + 1; pixels that a square holds in part count in part.

    The border mirrors without its edge. `radius` (B,) lives on the CPU and never exceeds `largest`, which must not
    depend on the batch.
    """
    reach = math.ceil(largest)
    taps = torch.arange(reach + 1, dtype=torch.float64)
    share = (radius[:, None] + 1 - taps).clamp(0, 1) / (2 * radius[:, None] + 1)
    kernels = fused("blurs", images.device)
    if kernels is not None and reach < min(images.shape[-2:]):
        radii = np.full(len(images), reach)
        blurred: Tensor = kernels.gaussian(images, share.numpy(), radii, _REFLECT101)
        return blurred
    weights = to_device(share, images.device, torch.float32).T[..., None, None, None]
    padded = pad(images, reach, reach, reach, reach, "reflect101")
    return _along(_along(padded, weights, -2), weights, -1)


def _along(padded: Tensor, weights: Tensor, dim: int) -> Tensor:
    """Symmetric sums along a dimension; `weights` (taps, B, 1, 1, 1) from the middle outwards."""
    reach = len(weights) - 1
    length = padded.shape[dim] - 2 * reach
    total = padded.narrow(dim, reach, length) * weights[0]
    for distance in range(1, reach + 1):
        pair = padded.narrow(dim, reach - distance, length) + padded.narrow(dim, reach + distance, length)
        total.addcmul_(pair, weights[distance])
    return total
