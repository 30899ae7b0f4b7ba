"""Small shapes put on images at given places: which pixels they cover, how often, and by which shape last."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from blemish.ops.transfer import to_device

Inside = Callable[[Tensor, Tensor], Tensor]
"""Whether a pixel that lies (down, right) of a shape's centre, in pixels, belongs to the shape."""


def covered_index(
    centres: Tensor, shown: Tensor, inside: Inside, reach: tuple[float, float], height: int, width: int
) -> Tensor:
    """The flat positions of the pixels covered by each shape, (B, N, places) int64; height · width stands for none.

    `centres` (B, N, 2) are (y, x) in pixels from the first pixel's centre and need not be whole: on average a shape
    then covers as many pixels as its area, however small it is. `shown` (B, N) says which shapes exist. No shape
    extends further than `reach` down or to the right.
    """
    down, right = (_offsets(extent, centres.device) for extent in reach)
    y, dy = _near(centres[..., 0], down, reach[0])
    x, dx = _near(centres[..., 1], right, reach[1])
    x, dx = x[..., None, :], dx[..., None, :]
    y, dy = y[..., None], dy[..., None]
    hit = inside(dy, dx) & ((y >= 0) & (y < height) & shown[..., None, None]) & ((x >= 0) & (x < width))
    flat = (y * width + x).to(torch.int64)
    return flat.masked_fill_(~hit, height * width).flatten(2)


def _offsets(reach: float, device: torch.device) -> Tensor:
    return torch.arange(math.floor(2 * reach) + 1, device=device, dtype=torch.float32)


def _near(centre: Tensor, offsets: Tensor, reach: float) -> tuple[Tensor, Tensor]:
    """The rows, or columns, within reach of each centre, and their distances from it."""
    position = (centre - reach).ceil_()[..., None] + offsets
    return position, position - centre[..., None]


def placed_index(rows: Tensor, columns: Tensor, shown: Tensor, height: int, width: int) -> Tensor:
    """The flat positions of pixels at (row, column), (B, N, P) int64, of the shapes that are `shown` (B, N).

    As `covered_index` counts them: height · width stands for what is outside the image, or not shown.
    """
    seen = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width) & shown[..., None]
    return torch.where(seen, rows * width + columns, height * width)


def _canvas(index: Tensor, height: int, width: int, dtype: torch.dtype) -> Tensor:
    # One place more than there are pixels catches what covers none.
    return torch.zeros((len(index), height * width + 1), dtype=dtype, device=index.device)


def _plane(canvas: Tensor, height: int, width: int) -> Tensor:
    return canvas[:, :-1].reshape(-1, 1, height, width)


def covered(index: Tensor, height: int, width: int) -> Tensor:
    """Whether any shape covers a pixel, bool (B, 1, H, W)."""
    return _plane(_canvas(index, height, width, torch.bool).scatter_(1, index.flatten(1), True), height, width)


def times_covered(index: Tensor, height: int, width: int) -> Tensor:
    """How many shapes cover a pixel, int32 (B, 1, H, W)."""
    flat = index.flatten(1)
    ones = torch.ones((), dtype=torch.int32, device=index.device).expand_as(flat)
    return _plane(_canvas(index, height, width, torch.int32).scatter_add_(1, flat, ones), height, width)


def topmost(index: Tensor, height: int, width: int) -> Tensor:
    """The number, from 1, of the last shape that covers a pixel, and 0 where none does; int64 (B, 1, H, W)."""
    rank = torch.arange(1, index.shape[1] + 1, device=index.device)[:, None].expand_as(index).flatten(1)
    canvas = _canvas(index, height, width, torch.int64)
    return _plane(canvas.scatter_reduce_(1, index.flatten(1), rank, "amax"), height, width)


def pixels_between(start: Tensor, stop: Tensor, count: int, device: torch.device) -> Tensor:
    """Which of `count` pixels lie in start … stop − 1, bool (…, count) on the device, for bounds (…) on the CPU."""
    first, last = (to_device(bound, device, torch.float32)[..., None] for bound in (start, stop))
    pixels = torch.arange(count, device=device)
    return (pixels >= first) & (pixels < last)
