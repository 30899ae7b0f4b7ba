"""The light on drops of water: `blemish.ops.edges.drop_light` in a kernel for each step that needs all of the last.

Whole numbers throughout, and the same ones as on a CPU. Levels are int16 (B, 1, H, W).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from blemish.ops.fused.levels import EXACT, here
from blemish.ops.fused.on_device import on_its_device
from blemish.ops.fused.regions import connected

_LANES = 256
_REACH = 20  # pixels; distances are cut there
_BINS = 32  # a power of two above that


@triton.jit
def _cut(index, size):
    """The nearest place inside."""
    return tl.minimum(tl.maximum(index, 0), size - 1)


@triton.jit
def _mirrored(index, size):
    """A place at most one beyond the border, mirrored there without the edge."""
    index = tl.where(index < 0, -index, index)
    return tl.where(index >= size, 2 * size - 2 - index, index)


@triton.jit
def _whole(source, row, column, width, inside):
    return tl.load(source + row * width + column, inside, other=0).to(tl.int32)


@triton.jit
def _gradient_kernel(levels, norms, height, width, parts, lanes: tl.constexpr):
    """Four times the norm |dx| + |dy| of Sobel's gradient, plus its direction: 0 and 1 diagonal, 2 steep, 3 flat."""
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    levels += image.to(tl.int64) * size
    row = pixel // width
    column = pixel - row * width
    above, below = _cut(row - 1, height), _cut(row + 1, height)
    left, right = _cut(column - 1, width), _cut(column + 1, width)
    corners = _whole(levels, below, right, width, inside) - _whole(levels, above, left, width, inside)
    others = _whole(levels, above, right, width, inside) - _whole(levels, below, left, width, inside)
    sides = _whole(levels, row, right, width, inside) - _whole(levels, row, left, width, inside)
    ends = _whole(levels, below, column, width, inside) - _whole(levels, above, column, width, inside)
    across, down = corners + others + 2 * sides, corners - others + 2 * ends
    falling = (across ^ down) < 0
    across, down = tl.maximum(across, -across), tl.maximum(down, -down)
    bound = (across.to(tl.float32) * 0.414215087890625).to(tl.int32)
    direction = tl.where(falling, 1, 0)
    direction = tl.where(down > bound + 2 * across, 2, direction)
    direction = tl.where(down <= bound, 3, direction)
    tl.store(norms + image.to(tl.int64) * size + pixel, (across + down) * 4 + direction, inside)


@triton.jit
def _norm(norms, row, column, height, width, inside):
    """The norm at a place; 0 outside of the image."""
    there = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
    return tl.load(norms + row * width + column, there, other=0) >> 2


@triton.jit
def _ridge_kernel(norms, strong, weak, low, high, height, width, parts, lanes: tl.constexpr):
    """Where the norm is largest along the gradient; of planes with a frame, one pixel wide, the inside is written."""
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    norms += image.to(tl.int64) * size
    row = pixel // width
    column = pixel - row * width
    packed = tl.load(norms + pixel, inside, other=0)
    norm, direction = packed >> 2, packed & 3
    down = tl.where(direction == 3, 0, 1)
    right = tl.where(direction == 2, 0, tl.where(direction == 1, -1, 1))
    before = _norm(norms, row - down, column - right, height, width, inside)
    after = _norm(norms, row + down, column + right, height, width, inside)
    # Of equal neighbours the first wins in a row or a column, and none on a diagonal.
    ridge = (norm > before) & ((norm > after) | ((norm == after) & (direction >= 2))) & (norm > low)
    target = image.to(tl.int64) * (height + 2) * (width + 2) + (row + 1) * (width + 2) + column + 1
    tl.store(weak + target, ridge.to(tl.uint8), inside)
    tl.store(strong + target, (ridge & (norm > high)).to(tl.uint8), inside)


@triton.jit
def _column_kernel(edges, steps, height, width, parts, reach: tl.constexpr, lanes: tl.constexpr):
    """Rows to the nearest edge pixel of the same column, at most ``reach``; edges have a frame."""
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    row = pixel // width
    column = pixel - row * width
    edges += image.to(tl.int64) * (height + 2) * (width + 2) + (row + 1) * (width + 2) + column + 1
    nearest = tl.full((lanes,), reach, tl.int32)
    for back in range(reach):
        step = reach - 1 - back
        above = tl.load(edges - step * (width + 2), inside & (row >= step), other=0)
        below = tl.load(edges + step * (width + 2), inside & (row + step < height), other=0)
        nearest = tl.where((above | below) != 0, step, nearest)
    tl.store(steps + image.to(tl.int64) * size + pixel, nearest.to(tl.uint8), inside)


@triton.jit
def _length(one, other):
    """Of the shortest chain to a place so many rows and columns away, in 1/320 pixel.

    Straight steps cost 320, diagonal ones 448 and knight's moves 703: two kinds of them are enough.
    """
    long, short = tl.maximum(one, other), tl.minimum(one, other)
    beyond = long - 2 * short
    return tl.where(beyond > 0, beyond * 320 + short * 703, (long - short) * 703 - beyond * 448)


@triton.jit
def _distance_kernel(steps, distances, height, width, parts, reach: tl.constexpr, lanes: tl.constexpr):
    """The chamfer distance to the nearest edge pixel in 1/320 pixel, at most ``reach`` pixels."""
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    column = pixel % width
    steps += image.to(tl.int64) * size + pixel
    distance = tl.full((lanes,), reach * 320, tl.int32)
    for away in range(reach):
        left = tl.load(steps - away, inside & (column >= away), other=reach).to(tl.int32)
        right = tl.load(steps + away, inside & (column + away < width), other=reach).to(tl.int32)
        distance = tl.minimum(distance, _length(tl.minimum(left, right), away))
    tl.store(distances + image.to(tl.int64) * size + pixel, distance, inside)


@triton.jit
def _block(source, row, column, height, width, inside):
    """The sum of a 3 × 3 block, the border mirrored without the edge."""
    total = tl.zeros_like(row)
    for down in range(3):
        for right in range(3):
            there = _mirrored(row + down - 1, height) * width + _mirrored(column + right - 1, width)
            total += tl.load(source + there, inside, other=0).to(tl.int32)
    return total


@triton.jit
def _depth_kernel(distances, depths, counts, height, width, parts, bins: tl.constexpr, lanes: tl.constexpr):
    """The mean distance of a 3 × 3 block, in whole pixels rounded down, and how often there is each."""
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    row = pixel // width
    column = pixel - row * width
    total = _block(distances + image.to(tl.int64) * size, row, column, height, width, inside)
    depth = ((total.to(tl.float32) + 0.5) * 0.00034722222222222224).to(tl.int32)
    tl.store(depths + image.to(tl.int64) * size + pixel, depth.to(tl.uint8), inside)
    for level in range(bins):
        count = tl.sum((inside & (depth == level)).to(tl.int32), axis=0)
        tl.atomic_add(counts + image * bins + level, count, count > 0, sem="relaxed")


@triton.jit
def _nearest(value):
    """The nearest whole number, the even one of two, of values below 2²²."""
    return (value + 12582912.0) - 12582912.0


@triton.jit
def _equalise_kernel(counts, table, size, bins: tl.constexpr):
    """What every depth becomes, so that the depths of an image are spread evenly over the levels."""
    level = tl.arange(0, bins)
    here = tl.program_id(0) * bins + level
    up_to = tl.cumsum(tl.load(counts + here), axis=0)
    darkest = tl.min(tl.where(up_to == 0, size, up_to), axis=0)
    scale = tl.div_rn(255.0 + tl.zeros((bins,), tl.float32), tl.maximum(size - darkest, 1).to(tl.float32))
    spread = _nearest((up_to - darkest).to(tl.float32) * scale).to(tl.int32)
    tl.store(table + here, tl.where(darkest < size, spread, level))


@triton.jit
def _lit_kernel(depths, table, lit, height, width, parts, bins: tl.constexpr, lanes: tl.constexpr):
    """Equalised depths under the kernel [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], clipped to levels."""
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    depths += image.to(tl.int64) * size
    table += image * bins
    row = pixel // width
    column = pixel - row * width
    above, below = _mirrored(row - 1, height), _mirrored(row + 1, height)
    left, right = _mirrored(column - 1, width), _mirrored(column + 1, width)
    total = 2 * tl.load(table + _whole(depths, below, right, width, inside), inside, other=0)
    total -= 2 * tl.load(table + _whole(depths, above, left, width, inside), inside, other=0)
    total += tl.load(table + _whole(depths, row, column, width, inside), inside, other=0)
    total += tl.load(table + _whole(depths, row, right, width, inside), inside, other=0)
    total += tl.load(table + _whole(depths, below, column, width, inside), inside, other=0)
    total -= tl.load(table + _whole(depths, row, left, width, inside), inside, other=0)
    total -= tl.load(table + _whole(depths, above, column, width, inside), inside, other=0)
    total = tl.minimum(tl.maximum(total, 0), 255)
    tl.store(lit + image.to(tl.int64) * size + pixel, total.to(tl.uint8), inside)


@triton.jit
def _smooth_kernel(lit, out, height, width, parts, lanes: tl.constexpr):
    """The rounded mean of a 3 × 3 block."""
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    row = pixel // width
    column = pixel - row * width
    total = _block(lit + image.to(tl.int64) * size, row, column, height, width, inside)
    mean = _nearest(total.to(tl.float32) * 0.1111111111111111)
    tl.store(out + image.to(tl.int64) * size + pixel, mean, inside)


@on_its_device
def drop_light(levels: Tensor, low: int, high: int) -> Tensor:
    """What `blemish.ops.edges.drop_light` gives, with Canny's thresholds."""
    levels = levels.contiguous()
    batch, _, height, width = levels.shape
    parts = triton.cdiv(height * width, _LANES)
    grid, shape = (batch * parts,), (height, width, parts)

    def plane(kind: torch.dtype) -> Tensor:
        return torch.empty(levels.shape, dtype=kind, device=levels.device)

    norms, steps, distances, depths, out = map(
        plane, (torch.int32, torch.uint8, torch.int32, torch.uint8, torch.float32)
    )
    strong, weak = torch.zeros((2, batch, 1, height + 2, width + 2), dtype=torch.uint8, device=levels.device)
    _gradient_kernel[grid](levels, norms, *shape, lanes=_LANES, **EXACT)
    _ridge_kernel[grid](norms, strong, weak, low, high, *shape, lanes=_LANES)
    edges = connected(strong.view(torch.bool), weak.view(torch.bool)).view(torch.uint8)
    _column_kernel[grid](edges, steps, *shape, reach=_REACH, lanes=_LANES)
    _distance_kernel[grid](steps, distances, *shape, reach=_REACH, lanes=_LANES)
    counts, table = torch.zeros((2, batch, _BINS), dtype=torch.int32, device=levels.device)
    _depth_kernel[grid](distances, depths, counts, *shape, bins=_BINS, lanes=_LANES, **EXACT)
    _equalise_kernel[(batch,)](counts, table, height * width, bins=_BINS, **EXACT)
    lit = steps  # which is not needed any more
    _lit_kernel[grid](depths, table, lit, *shape, bins=_BINS, lanes=_LANES)
    _smooth_kernel[grid](lit, out, *shape, lanes=_LANES, **EXACT)
    return out
