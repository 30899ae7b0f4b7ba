"""Levels from a table of what becomes of each, and levels in and around rectangles."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.fused.levels import here
from blemish.ops.fused.on_device import on_its_device, sent

_LANES = 2048


@triton.jit
def _lookup_kernel(levels, out, tables, size, parts, lanes: tl.constexpr):
    plane, pixel, inside = here(size, parts, lanes)
    first = plane.to(tl.int64) * size
    index = tl.load(levels + first + pixel, inside, other=0).to(tl.int32)
    tl.store(out + first + pixel, tl.load(tables + plane * 256 + index, inside, other=0), inside)


@on_its_device
def looked_up(levels: Tensor, out: Tensor, tables: Tensor) -> None:
    """What uint8 tables, 256 for each plane, say of each level of images (B, C, H, W)."""
    size = levels.shape[-1] * levels.shape[-2]
    parts = triton.cdiv(size, _LANES)
    _lookup_kernel[(levels.numel() // size * parts,)](levels, out, tables.contiguous(), size, parts, lanes=_LANES)


@triton.jit
def _rectangle_kernel(levels, out, bounds, fills, many, channels, size, width, parts, inner, lanes: tl.constexpr):
    plane, pixel, inside = here(size, parts, lanes)
    y = pixel // width
    x = pixel - y * width
    covers = tl.zeros((lanes,), tl.int32)
    for number in range(many):
        own = bounds + (plane // channels * many + number) * 4
        rows = (y >= tl.load(own)) & (y < tl.load(own + 1))
        covers += (rows & (x >= tl.load(own + 2)) & (x < tl.load(own + 3))).to(tl.int32)
    within = covers > 0
    index = plane.to(tl.int64) * size + pixel
    value = tl.load(levels + index, inside, other=0).to(tl.int32)
    value = tl.where(within == (inner != 0), tl.load(fills + plane // channels), value)
    tl.store(out + index, value.to(tl.uint8), inside)


@on_its_device
def rectangles(levels: Tensor, out: Tensor, bounds: NDArray[Any], fills: NDArray[Any], inner: bool) -> None:
    """One level, fills[b], for all pixels in rectangles or around them; bounds (B, n, 4): top, bottom, left, right."""
    batch, channels, height, width = levels.shape
    parts = triton.cdiv(height * width, _LANES)
    shape = (bounds.shape[1], channels, height * width, width, parts, int(inner))
    grid = (batch * channels * parts,)
    _rectangle_kernel[grid](levels, out, *sent(levels, bounds, fills), *shape, lanes=_LANES)
