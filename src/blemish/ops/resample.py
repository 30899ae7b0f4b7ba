"""Resampling: the reference's centre zoom, Pillow's box and bilinear filters, and bilinear scaling.

None of it is torch's own on a CPU, which rounds differently with one thread and with several.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from blemish.ops.cache import cached
from blemish.ops.compiled import compiled
from blemish.ops.levels import truncated


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
    if images.device.type != "cpu":
        crop = F.interpolate(crop, size=(tall, wide), mode="bilinear", align_corners=True)
        return crop[..., trim_top : trim_top + height, trim_left : trim_left + width]
    rows, columns = _between(crop_height, tall, trim_top, height), _between(crop_width, wide, trim_left, width)
    return _lines(_lines(crop.flatten(0, 1), *rows).view(-1, crop_width, 1), *columns).view(images.shape)


def enlarged(images: Tensor, height: int, width: int) -> Tensor:
    """Images enlarged bilinearly; the edges of the first and last pixels, not their centres, stay where they are."""
    if images.device.type != "cpu":
        return F.interpolate(images, size=(height, width), mode="bilinear")
    tall, wide = images.shape[-2:]
    rows = _lines(images.flatten(0, 1), *_within(tall, height))
    return _lines(rows.view(-1, wide, 1), *_within(wide, width)).view(*images.shape[:-2], height, width)


def mean_zoom(images: Tensor, factors: Sequence[float]) -> Tensor:
    """The mean of the images and of their enlargements by each factor."""
    kernels = compiled("lines") if images.device.type == "cpu" and images.dtype == torch.float32 else None
    if kernels is not None:
        places = zoom_places(images.shape[-2:], factors)
        return torch.from_numpy(kernels.zoom_mean(images.contiguous().numpy(), *places))
    total = images.clone()
    for factor in factors:
        total += centre_zoom(images, factor)
    return total.div_(len(factors) + 1)


@lru_cache(maxsize=64)
def _zoom_arrays(size: int, factors: tuple[float, ...]) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    places, shares = _zoom_sources(size, factors, torch.device("cpu"))
    return places.numpy().astype(np.uint32), shares.numpy()


def zoom_places(size: tuple[int, int] | torch.Size, factors: Sequence[float]) -> tuple[NDArray[Any], ...]:
    """Where enlargements of images of this size read, as compiled kernels take it: rows, shares, columns, shares."""
    height, width = size
    return *_zoom_arrays(height, tuple(factors)), *_zoom_arrays(width, tuple(factors))


@cached()
def _zoom_sources(size: int, factors: tuple[float, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    """For each enlargement and position, the first of the two source positions and the share of the second."""
    positions, shares = [], []
    for factor in factors:
        start, crop, enlarged, trim = _zoom_extent(size, factor)
        lower, share = _between(crop, enlarged, trim, size)
        positions.append(start + lower)
        shares.append(share)
    return torch.stack(positions).to(device, torch.int32), torch.stack(shares).to(device, torch.float32)


def _between(length: int, size: int, start: int, count: int) -> tuple[Tensor, Tensor]:
    """Positions start … start + count − 1 of a line of ``length`` that is stretched to ``size``, as index and share."""
    steps = torch.arange(start, start + count, dtype=torch.float64)
    return _index_and_share(steps * ((length - 1) / max(1, size - 1)), length)


def _index_and_share(position: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """The first of the two neighbours of each position on a line, and the share of the second."""
    lower = position.floor().clamp(max=max(0, length - 2))
    return lower.to(torch.int64), position - lower


def _within(length: int, size: int) -> tuple[Tensor, Tensor]:
    """All positions of a line of ``length`` pixels that is shown with ``size`` pixels, as index and share."""
    position = (torch.arange(size, dtype=torch.float64) + 0.5) * (length / size) - 0.5
    return _index_and_share(position.clamp(0, length - 1), length)


def _lines(images: Tensor, lower: Tensor, shares: Tensor) -> Tensor:
    """Lines of (N, n, W) between lines ``lower`` and the next ones, with the next ones' shares."""
    share = shares.to(images.dtype)[:, None]
    upper = (lower + 1).clamp(max=images.shape[1] - 1)
    return torch.lerp(images.index_select(1, lower), images.index_select(1, upper), share)


def rescaled(levels: Tensor, factor: float) -> Tensor:
    """Uint8 images (C, H, W) on the CPU at ``factor`` times their size, bilinearly, at the nearest levels.

    The factor itself, not the ratio of rounded sizes, decides where to sample: so does OpenCV. At simple factors many
    values lie midway between two levels, and float32 decides about them. Here it does so on every machine alike: each
    step adds a product in double precision, where it is exact, and rounds once.
    """
    rows, columns = (_sources(size, factor) for size in levels.shape[-2:])
    total = torch.zeros((), dtype=torch.float32)
    for i, j in ((0, 1), (0, 0), (1, 0), (1, 1)):
        values = levels.index_select(-2, rows[0][i]).index_select(-1, columns[0][j]).to(torch.float64)
        weights = (rows[1][i][:, None] * columns[1][j]).to(torch.float64)
        total = values.mul_(weights).add_(total).to(torch.float32)
    return truncated(total.add_(0.5))


def _sources(length: int, factor: float) -> tuple[Tensor, Tensor]:
    """For each position on a scaled line, the source positions on both sides, (2, n), and their float32 shares."""
    step = float(np.float32(1 / factor))
    position = (torch.arange(int(length * factor), dtype=torch.float64) + 0.5).mul_(step).sub_(0.5).clamp_(min=0)
    position = position.to(torch.float32)
    lower = position.floor().clamp_(max=length - 1)
    share = position - lower
    first = lower.to(torch.int64)
    return torch.stack([first, (first + 1).clamp(max=length - 1)]), torch.stack([1 - share, share])


@cached()
def _box_taps(source: int, target: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Pillow's BOX filter as (taps, target) source pixels and weights.

    A source pixel belongs to the target whose interval holds its centre, never to two in fractions.
    """
    scale = source / target
    support = 0.5 * max(scale, 1.0)
    centres = (torch.arange(target, dtype=torch.float64) + 0.5) * scale
    first, last = (centres - support + 0.5).floor(), (centres + support + 0.5).floor()
    pixels = first + torch.arange(int((last - first).max()), dtype=torch.float64)[:, None]
    position = (pixels - centres + 0.5) / max(scale, 1.0)
    inside = (pixels < last) & (pixels < source) & (position > -0.5) & (position <= 0.5)
    weights = inside.to(torch.float32) / inside.sum(0)
    return pixels.clamp(max=source - 1).to(device, torch.int64), weights.to(device)


def _box(images: Tensor, target: int) -> Tensor:
    """Shrink the middle dimension of (N, source, W) whole levels, held as float32, to whole levels."""
    pixels, weights = _box_taps(images.shape[1], target, images.device)
    total = images.index_select(1, pixels[0]).mul_(weights[0, :, None])
    for pixel, weight in zip(pixels[1:], weights[1:], strict=True):
        total.addcmul_(images.index_select(1, pixel), weight[:, None])
    # Halves go up, as in Pillow's fixed-point arithmetic, float noise or not.
    return total.add_(0.5 + 2.0**-12).floor_()


def pixelated(levels: Tensor, height: int, width: int) -> Tensor:
    """Uint8 images shrunk to height × width by Pillow's BOX filter, and enlarged again by it.

    Pillow filters columns first, then rows, and rounds each time. Enlarging only repeats pixels.
    """
    tall, wide = levels.shape[-2:]
    kernels = compiled("boxes") if levels.device.type == "cpu" else None
    if kernels is not None:
        out = torch.empty(levels.shape, dtype=torch.uint8)
        pixelate_levels(kernels, levels.contiguous().numpy(), out.numpy(), height, width)
        return out
    # Columns of all images are one matrix, the quickest thing to pick from.
    floats = levels.contiguous().to(torch.float32)
    small = _box(floats.view(-1, wide, 1), width) if width < wide else floats
    small = _box(small.view(-1, tall, width), height)
    columns, rows = _box_taps(width, wide, levels.device)[0][0], _box_taps(height, tall, levels.device)[0][0]
    repeated = truncated(small.view(-1, width).index_select(1, columns)).view(-1, height, wide)
    return repeated.index_select(1, rows).view(levels.shape)


def pixelate_levels(kernels: Any, levels: Any, out: Any, height: int, width: int) -> None:
    """The same by the kernels of `blemish.ops.compiled.boxes`, or by fused ones."""
    tall, wide = levels.shape[-2:]
    columns, rows = _box_arrays(wide, width), _box_arrays(tall, height)
    repeated = (_repeated(width, wide), _repeated(height, tall))
    planes = (levels.reshape(-1, tall, wide), out.reshape(-1, tall, wide))
    kernels.pixelate(*planes, *columns, *rows, *repeated)


@lru_cache(maxsize=64)
def _box_arrays(source: int, target: int) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    pixels, weights = _box_taps(source, target, torch.device("cpu"))
    return pixels.numpy().astype(np.uint32), weights.numpy()


@lru_cache(maxsize=64)
def _repeated(source: int, target: int) -> NDArray[np.uint32]:
    """Which of the pixels of a line stands at each place of a longer one."""
    places: NDArray[np.uint32] = _box_arrays(source, target)[0][0]
    return places
