"""Means over blocks of pixels that differ from image to image, in whole numbers."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.fused.levels import here
from blemish.ops.fused.on_device import on_its_device, sent

_LANES = 512


@triton.jit
def _blocks_kernel(
    levels, out, tops, bottoms, lefts, rights, most_down, most_across, channels, size, height, width, parts,
    lanes: tl.constexpr,
):  # fmt: skip
    plane, pixel, inside = here(size, parts, lanes)
    image = plane // channels
    y = pixel // width
    x = pixel - y * width
    top = tl.load(tops + image * height + y, inside, other=0)
    bottom = tl.load(bottoms + image * height + y, inside, other=1)
    left = tl.load(lefts + image * width + x, inside, other=0)
    right = tl.load(rights + image * width + x, inside, other=1)
    source = levels + plane.to(tl.int64) * size
    total = tl.zeros((lanes,), tl.int32)
    for down in range(most_down):
        row = top + down
        for across in range(most_across):
            column = left + across
            there = inside & (row < bottom) & (column < right)
            total += tl.load(source + row * width + column, there, other=0).to(tl.int32)
    mean = total // ((bottom - top) * (right - left))
    tl.store(out + plane.to(tl.int64) * size + pixel, mean.to(tl.uint8), inside)


@on_its_device
def block_means(levels: Tensor, out: Tensor, rows: tuple[NDArray[Any], ...], columns: tuple[NDArray[Any], ...]) -> None:
    """The mean over each pixel's block, rounded down; the first and last but one row (B, H) and column (B, W) of it."""
    batch, channels, height, width = levels.shape
    most = [int((stop - start).max()) for start, stop in (rows, columns)]
    parts = triton.cdiv(height * width, _LANES)
    shape = (*most, channels, height * width, height, width, parts)
    _blocks_kernel[(batch * channels * parts,)](levels, out, *sent(levels, *rows, *columns), *shape, lanes=_LANES)
