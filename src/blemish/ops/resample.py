"""Resampling: the reference's centre zoom, and Pillow's box filter."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["box_resize", "centre_zoom"]


def _zoom_extent(size: int, factor: float) -> tuple[int, int, int, int]:
    """Start and length of the centre crop, length of its enlargement, and how much to trim in front."""
    crop = math.ceil(size / factor)
    enlarged = round(crop * factor)
    return (size - crop) // 2, crop, enlarged, (enlarged - size) // 2


def centre_zoom(images: Tensor, factor: float) -> Tensor:
    """Enlarge the centre crop by `factor` ≥ 1 bilinearly with aligned corners, and trim to the original size."""
    height, width = images.shape[-2:]
    top, crop_height, tall, trim_top = _zoom_extent(height, factor)
    left, crop_width, wide, trim_left = _zoom_extent(width, factor)
    crop = images[..., top : top + crop_height, left : left + crop_width]
    if (crop_height, crop_width) != (tall, wide):
        crop = F.interpolate(crop, size=(tall, wide), mode="bilinear", align_corners=True)
    return crop[..., trim_top : trim_top + height, trim_left : trim_left + width]


@lru_cache(maxsize=64)
def _box_windows(source: int, target: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """For each target pixel the source pixels Pillow's BOX averages, (taps, target) indices and weights.

    A source pixel belongs to the target whose interval holds its centre: whole pixels, never fractions of one.
    """
    scale = source / target
    support = 0.5 * max(scale, 1.0)
    centres = (torch.arange(target, dtype=torch.float64) + 0.5) * scale
    first = (centres - support + 0.5).to(torch.int64).clamp(min=0)
    last = (centres + support + 0.5).to(torch.int64).clamp(max=source)
    taps = torch.arange(int((last - first).max()))[:, None]
    position = (first + taps - centres + 0.5) / max(scale, 1.0)
    weights = ((first + taps < last) & (position > -0.5) & (position <= 0.5)).to(torch.float64)
    weights = (weights / weights.sum(0)).to(device, torch.float32)
    return (first + taps).clamp(max=source - 1).to(device), weights


def _box_along(levels: Tensor, dim: int, target: int) -> Tensor:
    """One pass of Pillow's separable box filter on uint8 levels, rounded to whole levels."""
    source = levels.shape[dim]
    if source == target:
        return levels
    indices, weights = _box_windows(source, target, levels.device)
    if len(indices) == 1:
        return levels.index_select(dim, indices[0])
    if dim == -2:
        weights = weights[..., None]
    floats = levels.to(torch.float32)
    total = floats.index_select(dim, indices[0]).mul_(weights[0])
    for index, weight in zip(indices[1:], weights[1:], strict=True):
        total.addcmul_(floats.index_select(dim, index), weight)
    return total.add_(0.5 + 2.0**-12).to(torch.uint8)


def box_resize(levels: Tensor, height: int, width: int) -> Tensor:
    """Pillow's BOX resize of uint8 images: columns first, then rows, rounding each time."""
    return _box_along(_box_along(levels, -1, width), -2, height)
