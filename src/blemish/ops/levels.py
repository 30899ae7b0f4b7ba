"""Between grey levels, uint8, and floats."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Levels = NDArray[np.uint8]
"""Images (B, C, H, W) as compiled kernels take them."""


# From here on NumPy asks for large pages.
_LARGE = 2**22


def empty_like(images: Tensor) -> Tensor:
    """What `torch.empty_like` gives, which for a large batch on a CPU takes longer than many corruptions do.

    The system hands out memory in pages, each at its first use; NumPy asks it for large pages, which are fewer. The C
    library asks for blocks of 32 MiB and more anew each time, and now and then for torch's smaller ones, as they are
    aligned.
    """
    if images.is_cpu and images.nbytes >= _LARGE and images.is_contiguous():
        return torch.from_numpy(np.empty(images.nbytes, np.uint8)).view(images.dtype).view(images.shape)
    return torch.empty_like(images)


def unit_range(levels: Tensor) -> Tensor:
    """Levels 0 … 255 as float32 in [0, 1]."""
    if levels.device.type == "cpu":
        return levels.to(torch.float32).mul_(1 / 255)
    if levels.dtype == torch.float64:
        levels = levels.to(torch.float32)
    return levels * (1 / 255)  # one pass on a GPU; on a CPU the two above are twice as fast


def as_levels(images: Tensor) -> Tensor:
    """Uint8 images, or floats in [0, 1] at their nearest levels, with the memory in the order of the dimensions.

    Products and sums may be rounded differently in other layouts: neither type nor layout may reach an operation.
    """
    images = images.detach()
    if images.dtype != torch.uint8:
        images = truncated(images.to(torch.float32).mul(255).round_().clamp_(0, 255))
    # Through one dimension: the strides of dimensions of size 1 would otherwise be whatever they were.
    return images.reshape(-1).view(images.shape)


def truncated(levels: Tensor) -> Tensor:
    """Float levels in [0, 255] to uint8 by truncation."""
    if levels.device.type == "cpu":
        return torch.from_numpy(levels.numpy().astype(np.uint8))  # five times as fast as torch's own cast
    return levels.to(torch.uint8)
