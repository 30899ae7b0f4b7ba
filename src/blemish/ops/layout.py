"""Between images whose channels come last in memory, as in files and NumPy, and those whose channels come first."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.ops.compiled import compiled


def _kernels(images: NDArray[Any], channels: int) -> Any | None:
    if images.dtype != np.uint8 or channels != 3 or not images.flags.c_contiguous:
        return None
    return compiled("layout")


def channels_first(images: NDArray[Any]) -> NDArray[Any]:
    """A copy of images (B, H, W, C) as (B, C, H, W), in the machine's own byte order."""
    batch, height, width, channels = images.shape
    kernels = _kernels(images, channels)
    if kernels is None:
        return np.array(images.transpose(0, 3, 1, 2), dtype=images.dtype.newbyteorder("="), order="C")
    out = np.empty((batch, 3, height, width), np.uint8)
    for pixels, planes in zip(images, out, strict=True):
        kernels.to_planes(pixels.reshape(-1, 3), planes.reshape(3, -1))
    return out


def channels_last(images: NDArray[Any]) -> NDArray[Any]:
    """Images (B, C, H, W) as (B, H, W, C), in the order of their memory."""
    batch, channels, height, width = images.shape
    kernels = _kernels(images, channels)
    if kernels is None:
        return np.ascontiguousarray(images.transpose(0, 2, 3, 1))
    out = np.empty((batch, height, width, 3), np.uint8)
    for planes, pixels in zip(images, out, strict=True):
        kernels.to_pixels(planes.reshape(3, -1), pixels.reshape(-1, 3))
    return out
