"""Resampling: the reference's centre zoom, and Pillow's box filter."""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.ops.linear import LinearMap

__all__ = ["centre_zoom", "pixelated"]


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
def _box_map(source: int, target: int, device: torch.device) -> LinearMap:
    """Pillow's BOX filter: a source pixel belongs to the target whose interval holds its centre, never in fractions."""
    scale = source / target
    support = 0.5 * max(scale, 1.0)
    centres = ((torch.arange(target, dtype=torch.float64) + 0.5) * scale)[:, None]
    first, last = (centres - support + 0.5).floor(), (centres + support + 0.5).floor()
    pixels = torch.arange(source, dtype=torch.float64)
    position = (pixels - centres + 0.5) / max(scale, 1.0)
    inside = (pixels >= first) & (pixels < last) & (position > -0.5) & (position <= 0.5)
    weights = inside.to(torch.float64)
    return LinearMap.of((weights / weights.sum(1, keepdim=True))[None, None], device, torch.float32)


def pixelated(levels: Tensor, height: int, width: int) -> Tensor:
    """Uint8 images shrunk to height × width by Pillow's BOX filter, and enlarged again by it.

    Pillow filters columns first, then rows, and rounds each time. Enlarging only repeats pixels.
    """
    tall, wide = levels.shape[-2:]
    small = levels.to(torch.float32)
    if width < wide:
        small = _rounded(_box_map(wide, width, levels.device).across(small))
    if height < tall:
        small = _rounded(_box_map(tall, height, levels.device).down(small))
    if width < wide:
        small = _box_map(width, wide, levels.device).across(small)
    rows = _box_map(height, tall, levels.device).matrix[0, 0].argmax(1)
    return small.to(torch.uint8).index_select(-2, rows)


def _rounded(levels: Tensor) -> Tensor:
    # Halves go up, as in Pillow's fixed-point arithmetic, float noise or not.
    return levels.add_(0.5 + 2.0**-12).floor_()
