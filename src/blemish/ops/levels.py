"""Between grey levels, uint8, and floats."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["nearest_levels", "truncated", "unit_range"]


def unit_range(levels: Tensor) -> Tensor:
    """Levels 0 … 255 as float32 in [0, 1]."""
    if levels.device.type == "cpu":
        return levels.to(torch.float32).mul_(1 / 255)
    if levels.dtype == torch.float64:
        levels = levels.to(torch.float32)
    return levels * (1 / 255)  # one pass on a GPU; on a CPU the two above are twice as fast


def nearest_levels(images: Tensor) -> Tensor:
    """Floats in [0, 1] as the nearest levels, uint8."""
    return images.to(torch.float32).mul(255).round_().clamp_(0, 255).to(torch.uint8)


def truncated(levels: Tensor) -> Tensor:
    """Float levels in [0, 255] to uint8 by truncation."""
    if levels.device.type == "cpu":
        return torch.from_numpy(levels.numpy().astype(np.uint8))  # five times as fast as torch's own cast
    return levels.to(torch.uint8)
