"""Fourier transforms of planes, whose rounding depends neither on their number nor on the number of threads."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from blemish.ops.groups import in_groups
from blemish.ops.threads import one_thread

# Planes that a GPU transforms at once; of large ones fewer, so that one image does not need the memory of many.
_PLANES = 48
_PLANE_VALUES = 2**24


def fast_size(size: int) -> int:
    """The next multiple of 16 whose only prime factors are 2, 3 and 5; other transforms take up to twice as long."""
    size = -(-size // 16) * 16
    while not _is_smooth(size):
        size += 16
    return size


def _is_smooth(number: int) -> bool:
    for prime in (2, 3, 5):
        while number % prime == 0:
            number //= prime
    return number == 1


def transformed(values: Tensor, transform: Callable[[Tensor], Tensor]) -> Tensor:
    """A transform of each plane of (…, H, W)."""
    planes = values.reshape(-1, *values.shape[-2:])
    if values.device.type == "cpu":
        # One by one: small planes are rounded otherwise when several are transformed at once.
        with one_thread(values.device):
            result = torch.stack([transform(plane) for plane in planes])
    else:  # a GPU's rounding depends on how many it does at once
        result = in_groups(planes, max(1, min(_PLANES, _PLANE_VALUES // planes[0].numel())), transform)
    return result.view(*values.shape[:-2], *result.shape[-2:])
