"""Moving the few numbers that steer an operation to the images' device."""

from __future__ import annotations

import torch
from torch import Tensor

# Larger copies from ordinary memory wait until the device has done everything queued before.
_AT_ONCE = 2**14


def to_device(tensor: Tensor, device: torch.device, dtype: torch.dtype | None = None) -> Tensor:
    """Copy to a device without waiting for the work already queued there."""
    tensor = tensor.to(dtype or tensor.dtype)
    if device.type == "cuda" and tensor.device.type == "cpu" and tensor.nbytes > _AT_ONCE:
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)
