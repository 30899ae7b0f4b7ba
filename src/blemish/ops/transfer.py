"""Moving the few numbers that steer an operation to the images' device."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["send"]


def send(tensor: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Copy to a device without waiting for the work already queued there."""
    return tensor.to(dtype or tensor.dtype).to(device, non_blocking=True)
