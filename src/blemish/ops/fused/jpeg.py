"""The JPEG round trip of `blemish.ops.jpeg` in whole numbers: five kernels over 8×8 blocks that lie one after another.

Blocks of an image: luma, then the two chroma planes at half the size. A pass over rows or columns gives each lane eight
values, so that no lane ever waits for another.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.fused.on_device import on_its_device, sent

_LANES = 256


@triton.jit
def _to_ycc(red, green, blue):
    luma = (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16
    cb = (-11059 * red - 21709 * green + 32768 * blue + 8421375) >> 16
    cr = (32768 * red - 27439 * green - 5329 * blue + 8421375) >> 16
    return luma, cb, cr


@triton.jit
def _pixel(levels, pixel, size, inside):
    red = tl.load(levels + pixel, inside, other=0).to(tl.int32)
    green = tl.load(levels + pixel + size, inside, other=0).to(tl.int32)
    blue = tl.load(levels + pixel + 2 * size, inside, other=0).to(tl.int32)
    return _to_ycc(red, green, blue)


@triton.jit
def _in_blocks(lane, columns):
    """Row and column of the sample at a place in a plane of ``columns`` blocks side by side."""
    block = lane // 64
    inner = lane - block * 64
    across = block // columns
    return across * 8 + inner // 8, (block - across * columns) * 8 + inner % 8


@triton.jit
def _split_kernel(levels, planes, height, width, luma, wide, chroma, half_wide, per_image, parts, lanes: tl.constexpr):
    number = tl.program_id(0) // parts
    image = number.to(tl.int64)
    lane = (tl.program_id(0) - number * parts) * lanes + tl.arange(0, lanes)
    size = height * width
    levels += image * 3 * size
    out = planes + image * per_image + lane
    # Luma, from the pixel or the edge's.
    here = lane < luma
    row, column = _in_blocks(lane, wide)
    nearest = tl.minimum(row, height - 1) * width + tl.minimum(column, width - 1)
    value, _, _ = _pixel(levels, nearest, size, here)
    tl.store(out, value.to(tl.uint8), here)
    # Chroma, the mean of four pixels; halves are rounded down and up in alternate columns. Columns are repeated before
    # it is taken, rows after.
    there = lane < chroma
    row, column = _in_blocks(lane, half_wide)
    row = tl.minimum(row, (height + 1) // 2 - 1)
    upper = tl.minimum(2 * row, height - 1) * width
    lower = tl.minimum(2 * row + 1, height - 1) * width
    left = tl.minimum(2 * column, width - 1)
    right = tl.minimum(2 * column + 1, width - 1)
    _, b0, r0 = _pixel(levels, upper + left, size, there)
    _, b1, r1 = _pixel(levels, upper + right, size, there)
    _, b2, r2 = _pixel(levels, lower + left, size, there)
    _, b3, r3 = _pixel(levels, lower + right, size, there)
    offset = 1 + column % 2
    tl.store(out + luma, ((b0 + b1 + b2 + b3 + offset) >> 2).to(tl.uint8), there)
    tl.store(out + luma + chroma, ((r0 + r1 + r2 + r3 + offset) >> 2).to(tl.uint8), there)


@triton.jit
def _forward(x0, x1, x2, x3, x4, x5, x6, x7):
    s0, s1, s2, s3 = x0 + x7, x1 + x6, x2 + x5, x3 + x4
    d0, d1, d2, d3 = x0 - x7, x1 - x6, x2 - x5, x3 - x4
    y0 = (s0 + s1 + s2 + s3) * 8192
    y1 = d0 * 11363 + d1 * 9633 + d2 * 6437 + d3 * 2260
    y2 = (s0 - s3) * 10703 + (s1 - s2) * 4433
    y3 = d0 * 9633 - d1 * 2259 - d2 * 11362 - d3 * 6436
    y4 = (s0 - s1 - s2 + s3) * 8192
    y5 = d0 * 6437 - d1 * 11362 + d2 * 2261 + d3 * 9633
    y6 = (s0 - s3) * 4433 - (s1 - s2) * 10704
    y7 = d0 * 2260 - d1 * 6436 + d2 * 9633 - d3 * 11363
    return y0, y1, y2, y3, y4, y5, y6, y7


@triton.jit
def _inverse(c0, c1, c2, c3, c4, c5, c6, c7):
    plus, minus = (c0 + c4) * 8192, (c0 - c4) * 8192
    e0, e3 = plus + c2 * 10703 + c6 * 4433, plus - c2 * 10703 - c6 * 4433
    e1, e2 = minus + c2 * 4433 - c6 * 10704, minus - c2 * 4433 + c6 * 10704
    o0 = c1 * 11363 + c3 * 9633 + c5 * 6437 + c7 * 2260
    o1 = c1 * 9633 - c3 * 2259 - c5 * 11362 - c7 * 6436
    o2 = c1 * 6437 - c3 * 11362 + c5 * 2261 + c7 * 9633
    o3 = c1 * 2260 - c3 * 6436 + c5 * 9633 - c7 * 11363
    return e0 + o0, e1 + o1, e2 + o2, e3 + o3, e3 - o3, e2 - o2, e1 - o1, e0 - o0


@triton.jit
def _byte(levels, shift: tl.constexpr):
    """One of eight levels that were read as one number, centred."""
    return ((levels >> shift) & 255).to(tl.int32) - 128


@triton.jit
def _rows_forward_kernel(rows, middle, count, lanes: tl.constexpr):
    lane = tl.program_id(0).to(tl.int64) * lanes + tl.arange(0, lanes)
    inside = lane < count
    levels = tl.load(rows + lane, inside, other=0)
    y0, y1, y2, y3, y4, y5, y6, y7 = _forward(
        _byte(levels, 0),
        _byte(levels, 8),
        _byte(levels, 16),
        _byte(levels, 24),
        _byte(levels, 32),
        _byte(levels, 40),
        _byte(levels, 48),
        _byte(levels, 56),
    )
    # Joined in the order of their bits, eight values of a lane are neighbours, and written as such.
    even = tl.join(tl.join(y0, y4), tl.join(y2, y6))
    odd = tl.join(tl.join(y1, y5), tl.join(y3, y7))
    eight = (tl.reshape(tl.join(even, odd), (lanes, 8)) + 1024) >> 11
    tl.store(middle + lane[:, None] * 8 + tl.arange(0, 8)[None, :], eight, inside[:, None])


@triton.jit
def _quantised(value, table, row, inside):
    """The whole multiple of a step that is nearest to a coefficient; halves go away from zero."""
    step = tl.load(table + row * 8, inside, other=1)
    coefficient = (value + 16384) >> 15
    size = (tl.abs(coefficient) + 4 * step) // (8 * step) * step
    return tl.where(coefficient < 0, -size, size)


@triton.jit
def _columns_kernel(middle, tables, kinds, count, columns_per_image, luma_columns, lanes: tl.constexpr):
    lane = tl.program_id(0).to(tl.int64) * lanes + tl.arange(0, lanes)
    inside = lane < count
    image = lane // columns_per_image
    chroma = (lane - image * columns_per_image >= luma_columns).to(tl.int64)
    kind = tl.load(kinds + image, inside, other=0)
    table = tables + (kind * 2 + chroma) * 64 + lane % 8
    source = middle + lane // 8 * 64 + lane % 8
    y0, y1, y2, y3, y4, y5, y6, y7 = _forward(
        tl.load(source, inside, other=0),
        tl.load(source + 8, inside, other=0),
        tl.load(source + 16, inside, other=0),
        tl.load(source + 24, inside, other=0),
        tl.load(source + 32, inside, other=0),
        tl.load(source + 40, inside, other=0),
        tl.load(source + 48, inside, other=0),
        tl.load(source + 56, inside, other=0),
    )
    x0, x1, x2, x3, x4, x5, x6, x7 = _inverse(
        _quantised(y0, table, 0, inside),
        _quantised(y1, table, 1, inside),
        _quantised(y2, table, 2, inside),
        _quantised(y3, table, 3, inside),
        _quantised(y4, table, 4, inside),
        _quantised(y5, table, 5, inside),
        _quantised(y6, table, 6, inside),
        _quantised(y7, table, 7, inside),
    )
    tl.store(source, (x0 + 1024) >> 11, inside)
    tl.store(source + 8, (x1 + 1024) >> 11, inside)
    tl.store(source + 16, (x2 + 1024) >> 11, inside)
    tl.store(source + 24, (x3 + 1024) >> 11, inside)
    tl.store(source + 32, (x4 + 1024) >> 11, inside)
    tl.store(source + 40, (x5 + 1024) >> 11, inside)
    tl.store(source + 48, (x6 + 1024) >> 11, inside)
    tl.store(source + 56, (x7 + 1024) >> 11, inside)


@triton.jit
def _level(value):
    return tl.minimum(tl.maximum(((value + 131072) >> 18) + 128, 0), 255).to(tl.int64)


@triton.jit
def _rows_inverse_kernel(middle, rows, count, lanes: tl.constexpr):
    lane = tl.program_id(0).to(tl.int64) * lanes + tl.arange(0, lanes)
    inside = lane < count
    source = middle + lane * 8
    x0, x1, x2, x3, x4, x5, x6, x7 = _inverse(
        tl.load(source, inside, other=0),
        tl.load(source + 1, inside, other=0),
        tl.load(source + 2, inside, other=0),
        tl.load(source + 3, inside, other=0),
        tl.load(source + 4, inside, other=0),
        tl.load(source + 5, inside, other=0),
        tl.load(source + 6, inside, other=0),
        tl.load(source + 7, inside, other=0),
    )
    lower = _level(x0) | (_level(x1) << 8) | (_level(x2) << 16) | (_level(x3) << 24)
    upper = _level(x4) | (_level(x5) << 8) | (_level(x6) << 16) | (_level(x7) << 24)
    tl.store(rows + lane, lower | (upper << 32), inside)


@triton.jit
def _sample(plane, row, column, columns, inside):
    block = (row // 8) * columns + column // 8
    return tl.load(plane + block * 64 + (row % 8) * 8 + column % 8, inside, other=0).to(tl.int32)


@triton.jit
def _doubled(plane, row, column, height, width, columns, inside):
    """Chroma at a pixel by the triangle filter, weights 9, 3, 3, 1 of 16, and centred."""
    near_row, near_column = row // 2, column // 2
    far_row = tl.minimum(tl.maximum(near_row + 2 * (row % 2) - 1, 0), (height + 1) // 2 - 1)
    far_column = tl.minimum(tl.maximum(near_column + 2 * (column % 2) - 1, 0), (width + 1) // 2 - 1)
    total = 9 * _sample(plane, near_row, near_column, columns, inside)
    total += 3 * _sample(plane, near_row, far_column, columns, inside)
    total += 3 * _sample(plane, far_row, near_column, columns, inside)
    total += _sample(plane, far_row, far_column, columns, inside)
    return ((total + 8 - column % 2) >> 4) - 128


@triton.jit
def _join_kernel(planes, out, height, width, luma, wide, chroma, half_wide, per_image, parts, lanes: tl.constexpr):
    number = tl.program_id(0) // parts
    image = number.to(tl.int64)
    pixel = (tl.program_id(0) - number * parts) * lanes + tl.arange(0, lanes)
    size = height * width
    inside = pixel < size
    row = pixel // width
    column = pixel - row * width
    planes += image * per_image
    light = _sample(planes, row, column, wide, inside) * 32768 + 16384
    cb = _doubled(planes + luma, row, column, height, width, half_wide, inside)
    cr = _doubled(planes + luma + chroma, row, column, height, width, half_wide, inside)
    red = (light + 45941 * cr) >> 15
    green = (light - 11277 * cb - 23401 * cr) >> 15
    blue = (light + 58065 * cb) >> 15
    target = out + image * 3 * size + pixel
    tl.store(target, tl.minimum(tl.maximum(red, 0), 255).to(tl.uint8), inside)
    tl.store(target + size, tl.minimum(tl.maximum(green, 0), 255).to(tl.uint8), inside)
    tl.store(target + 2 * size, tl.minimum(tl.maximum(blue, 0), 255).to(tl.uint8), inside)


@on_its_device
def jpeg(levels: Tensor, out: Tensor, tables: NDArray[Any], kinds: NDArray[Any]) -> None:
    """Uint8 images (B, C, H, W) after a round trip with tables (N, 2, 64), of which image b has number kinds[b]."""
    if levels.shape[1] == 1:
        # Gray in three channels has its own levels for luma, and chroma that no table changes.
        colour = levels.expand(-1, 3, -1, -1).contiguous()
        jpeg(colour, colour, tables, kinds)
        out.copy_(colour[:, :1])
        return
    batch, _, height, width = levels.shape
    own_tables, own = sent(levels, tables, kinds)
    wide, half_wide = -(-width // 8), -(-width // 16)
    luma = -(-height // 8) * wide * 64
    chroma = -(-height // 16) * half_wide * 64
    per_image = luma + 2 * chroma
    planes = torch.empty(batch * per_image, dtype=torch.uint8, device=levels.device)
    middle = torch.empty(batch * per_image, dtype=torch.int32, device=levels.device)
    shape = (height, width, luma, wide, chroma, half_wide, per_image)
    parts = triton.cdiv(max(luma, chroma), _LANES)
    _split_kernel[(batch * parts,)](levels, planes, *shape, parts, lanes=_LANES)
    lines = batch * per_image // 8
    rows = planes.view(torch.int64)
    grid = (triton.cdiv(lines, _LANES),)
    _rows_forward_kernel[grid](rows, middle, lines, lanes=_LANES)
    _columns_kernel[grid](middle, own_tables, own, lines, per_image // 8, luma // 8, lanes=_LANES)
    _rows_inverse_kernel[grid](middle, rows, lines, lanes=_LANES)
    parts = triton.cdiv(height * width, _LANES)
    _join_kernel[(batch * parts,)](planes, out, *shape, parts, lanes=_LANES)
