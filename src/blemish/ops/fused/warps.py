"""Bilinear sampling as torch's `grid_sample` rounds it on a CPU, and the elastic transform that is made of it.

The bits are those of `blemish.ops.compiled.warps`.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.fused.blurs import filtered
from blemish.ops.fused.levels import EXACT, absolute, here, level, unit
from blemish.ops.fused.on_device import on_its_device, sent

_LANES = 256


@triton.jit
def _reflected(x, low, span, most):
    """A position within 0 … most: mirrored at ``low`` and at half of ``span`` above it, then cut."""
    away = absolute(x - low)
    rest = away - tl.floor(tl.div_rn(away, span)) * span
    return tl.minimum(tl.maximum(tl.minimum(rest, span - rest) + low, 0.0), most)


@triton.jit
def _sampled(source, offset, beside, below, first, second, third, fourth, inside, levels: tl.constexpr):
    """The mix of four neighbours."""
    a = tl.load(source + offset, inside, other=0)
    b = tl.load(source + offset + beside, inside, other=0)
    c = tl.load(source + offset + below, inside, other=0)
    d = tl.load(source + offset + below + beside, inside, other=0)
    if levels:
        a, b, c, d = unit(a), unit(b), unit(c), unit(d)
    return tl.fma(d, fourth, tl.fma(c, third, tl.fma(b, second, a * first)))


@triton.jit
def _places(x, y, height, width):
    """Where four neighbours lie, and their shares."""
    left, top = tl.floor(x), tl.floor(y)
    right_share, down_share = x - left, y - top
    left_share, up_share = 1.0 - right_share, 1.0 - down_share
    column, row = left.to(tl.int32), top.to(tl.int32)
    beside = tl.minimum(column + 1, width - 1) - column
    below = (tl.minimum(row + 1, height - 1) - row) * width
    offset = row * width + column
    first, second = left_share * up_share, right_share * up_share
    return offset, beside, below, first, second, left_share * down_share, right_share * down_share


@triton.jit
def _affine_kernel(
    levels, out, per_column, per_row, scale_x, scale_y, half_x, half_y, height, width, parts, planes,
    from_levels: tl.constexpr, lanes: tl.constexpr,
):  # fmt: skip
    """Sample at affine positions, which lie in 1/1024 pixel, rounded to 1/32; levels or floats to floats."""
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    row = pixel // width
    column = pixel - row * width
    columns, rows = per_column + image * 2 * width + column, per_row + image * 2 * height + row
    fine = tl.load(columns, inside, other=0) + tl.load(rows, inside, other=0) + 16
    x = (((fine >> 5).to(tl.float32) * scale_x - 1.0) + 1.0) * half_x
    fine = tl.load(columns + width, inside, other=0) + tl.load(rows + height, inside, other=0) + 16
    y = (((fine >> 5).to(tl.float32) * scale_y - 1.0) + 1.0) * half_y
    x = _reflected(x, 0.0, (2 * (width - 1)).to(tl.float32), (width - 1).to(tl.float32))
    y = _reflected(y, 0.0, (2 * (height - 1)).to(tl.float32), (height - 1).to(tl.float32))
    offset, beside, below, first, second, third, fourth = _places(x, y, height, width)
    start = image.to(tl.int64) * size * planes
    for plane in range(planes):
        source = levels + start + plane * size
        value = _sampled(source, offset, beside, below, first, second, third, fourth, inside, from_levels)
        tl.store(out + start + plane * size + pixel, value, inside)


@triton.jit
def _displace_kernel(
    warped, out, fields, strengths, height, width, parts, planes, to_levels: tl.constexpr, lanes: tl.constexpr
):
    """Sample where two fields (2, H, W), right and down, times a strength, lead; floats to floats or levels."""
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    strength = tl.load(strengths + image)
    row = pixel // width
    column = pixel - row * width
    fields += image.to(tl.int64) * 2 * size + pixel
    wide, tall = width.to(tl.float32), height.to(tl.float32)
    right = tl.load(fields, inside, other=0.0) * strength + column.to(tl.float32)
    down = tl.load(fields + size, inside, other=0.0) * strength + row.to(tl.float32)
    x = tl.div_rn(right * 2.0 + 1.0, wide) - 1.0
    y = tl.div_rn(down * 2.0 + 1.0, tall) - 1.0
    x = _reflected(tl.fma(x + 1.0, wide * 0.5, -0.5), -0.5, wide * 2.0, wide - 1.0)
    y = _reflected(tl.fma(y + 1.0, tall * 0.5, -0.5), -0.5, tall * 2.0, tall - 1.0)
    offset, beside, below, first, second, third, fourth = _places(x, y, height, width)
    start = image.to(tl.int64) * size * planes
    # Sampling an image where it is may still round its values: one without displacement is not sampled again.
    moving = inside & (tl.zeros((lanes,), tl.float32) + strength > 0.0)
    for plane in range(planes):
        source = warped + start + plane * size
        value = _sampled(source, offset, beside, below, first, second, third, fourth, moving, False)
        value = tl.where(moving, value, tl.load(source + pixel, inside, other=0.0))
        if to_levels:
            value = level(value)
        tl.store(out + start + plane * size + pixel, value, inside)


@on_its_device
def elastic(
    levels: Tensor,
    out: Tensor,
    per_column: NDArray[Any],
    per_row: NDArray[Any],
    fields: Tensor,
    weights: NDArray[Any],
    radii: NDArray[Any],
    strength: NDArray[Any],
) -> None:
    """An affine map, positions (B, 2, W) and (B, 2, H) int32, then a displacement by blurred fields (B, 2, H, W)."""
    columns, rows, shares, spread, strengths = sent(levels, per_column, per_row, weights, radii, strength)
    smooth, warped = torch.empty_like(fields), torch.empty(levels.shape, dtype=torch.float32, device=levels.device)
    filtered(fields, smooth, 1, shares, spread)
    _launch_affine(levels, warped, columns, rows)
    _launch_displace(warped, out, smooth, strengths)


@on_its_device
def displaced(images: Tensor, fields: Tensor) -> Tensor:
    """What `blemish.ops.warp.displace` gives of float32 images, with fields (B, 2, H, W), right and down."""
    images = images.contiguous()
    out = torch.empty_like(images)
    _launch_displace(images, out, fields.contiguous(), torch.ones(len(images), device=images.device))
    return out


def _launch_displace(images: Tensor, out: Tensor, fields: Tensor, strengths: Tensor) -> None:
    batch, planes, height, width = images.shape
    parts = triton.cdiv(height * width, _LANES)
    kinds = {"to_levels": out.dtype == torch.uint8, "lanes": _LANES}
    _displace_kernel[(batch * parts,)](images, out, fields, strengths, height, width, parts, planes, **kinds, **EXACT)


@triton.jit
def _nearest(value):
    """The nearest whole number, the even one of two, of values below 2²²."""
    return (value + 12582912.0) - 12582912.0


@triton.jit
def _snapped(position):
    """The nearest multiples of 1/32 pixel, as `blemish.ops.distort.snapped`."""
    position = tl.where(position == position, position, 0.0)
    return _nearest(tl.minimum(tl.maximum(position, -65536.0), 65536.0) * 32.0) * 0.03125


@triton.jit
def _moved(position, scale, half, size, outside: tl.constexpr):
    """A position in pixels by way of torch's −1 … 1, and what stands for it inside."""
    position = ((position * scale - 1.0) + 1.0) * half
    most = (size - 1).to(tl.float32)
    if outside == 1:
        position = tl.minimum(tl.maximum(position, 0.0), most)
    elif outside == 2:
        position = _reflected(position, 0.0, most * 2.0, most)
    return position


@triton.jit
def _tap(source, row, column, height, width, inside):
    """A pixel, black outside of the image."""
    there = inside & (row >= 0) & (row < height) & (column >= 0) & (column < width)
    return tl.load(source + row * width + column, there, other=0.0)


@triton.jit(do_not_specialize=["parts"])
def _sample_kernel(
    images, out, across, down, scale_x, scale_y, half_x, half_y, height, width, wide, size, parts, planes,
    image_step, row_step, column_step, image_step_y, row_step_y, column_step_y,
    terms: tl.constexpr, outside: tl.constexpr, nearest: tl.constexpr, snap: tl.constexpr, lanes: tl.constexpr,
):  # fmt: skip
    """Sample at given positions (terms = 0), or at those of an affine (6 terms) or perspective map (9 terms)."""
    image, pixel, inside = here(size, parts, lanes)
    row = pixel // wide
    column = pixel - row * wide
    if terms == 0:
        x = tl.load(across + image * image_step + row * row_step + column * column_step, inside, other=0.0)
        y = tl.load(down + image * image_step_y + row * row_step_y + column * column_step_y, inside, other=0.0)
    else:
        own = across + image * terms
        right, below = column.to(tl.float32), row.to(tl.float32)
        x = (tl.load(own) * right + tl.load(own + 1) * below) + tl.load(own + 2)
        y = (tl.load(own + 3) * right + tl.load(own + 4) * below) + tl.load(own + 5)
        if terms == 9:
            depth = (tl.load(own + 6) * right + tl.load(own + 7) * below) + tl.load(own + 8)
            x, y = tl.div_rn(x, depth), tl.div_rn(y, depth)
    if snap:
        x, y = _snapped(x), _snapped(y)
    x = _moved(x, scale_x, half_x, width, outside)
    y = _moved(y, scale_y, half_y, height, outside)
    # Far outside everything is black, and whole numbers must not overflow.
    x = tl.minimum(tl.maximum(x, -4.0), width + 4.0)
    y = tl.minimum(tl.maximum(y, -4.0), height + 4.0)
    images += image.to(tl.int64) * height * width * planes
    out += image.to(tl.int64) * size * planes + pixel
    if nearest:
        at_row, at_column = _nearest(y).to(tl.int32), _nearest(x).to(tl.int32)
        for plane in range(planes):
            value = _tap(images + plane * height * width, at_row, at_column, height, width, inside)
            tl.store(out + plane * size, value, inside)
    else:
        left, top = tl.floor(x), tl.floor(y)
        right_share, down_share = x - left, y - top
        left_share, up_share = 1.0 - right_share, 1.0 - down_share
        at_column, at_row = left.to(tl.int32), top.to(tl.int32)
        for plane in range(planes):
            source = images + plane * height * width
            value = _tap(source, at_row, at_column, height, width, inside) * (left_share * up_share)
            value = tl.fma(_tap(source, at_row, at_column + 1, height, width, inside), right_share * up_share, value)
            value = tl.fma(_tap(source, at_row + 1, at_column, height, width, inside), left_share * down_share, value)
            value = tl.fma(
                _tap(source, at_row + 1, at_column + 1, height, width, inside), right_share * down_share, value
            )
            tl.store(out + plane * size, value, inside)


_OUTSIDE = {"zeros": 0, "replicate": 1, "reflect101": 2}


def _launch_sample(
    images: Tensor, at: tuple[Tensor, Tensor], steps: tuple[int, ...], terms: int, size: tuple[int, int],
    outside: str, nearest: bool, snap: bool,
) -> Tensor:  # fmt: skip
    images = images.contiguous()
    batch, planes, height, width = images.shape
    out = torch.empty((batch, planes, *size), dtype=torch.float32, device=images.device)
    parts = triton.cdiv(size[0] * size[1], _LANES)
    scales = (2 / (width - 1), 2 / (height - 1), (width - 1) / 2, (height - 1) / 2)
    shape = (height, width, size[1], size[0] * size[1], parts, planes)
    kinds = {"terms": terms, "outside": _OUTSIDE[outside], "nearest": nearest, "snap": snap, "lanes": _LANES}
    _sample_kernel[(batch * parts,)](images, out, *at, *scales, *shape, *steps, **kinds, **EXACT)
    return out


@on_its_device
def sampled(images: Tensor, x: Tensor, y: Tensor, outside: str, nearest: bool) -> Tensor:
    """What `blemish.ops.warp.sample` gives."""
    size = (x.shape[1], x.shape[2])
    return _launch_sample(images, (x, y), (*x.stride(), *y.stride()), 0, size, outside, nearest, False)


@on_its_device
def mapped(
    images: Tensor, backward: NDArray[Any], size: tuple[int, int], outside: str, nearest: bool, snap: bool
) -> Tensor:
    """What `blemish.ops.warp.sample_map` gives: maps (B, 2 or 3, 3), sampled at so many rows and columns."""
    (maps,) = sent(images, backward)
    terms = backward.shape[1] * 3
    return _launch_sample(images, (maps, maps), (0, 0, 0, 0, 0, 0), terms, size, outside, nearest, snap)


@on_its_device
def affine(images: Tensor, per_column: NDArray[Any], per_row: NDArray[Any]) -> Tensor:
    """What `blemish.ops.warp.warp_affine` gives of float32 images, or of levels."""
    images = images.contiguous()
    out = torch.empty(images.shape, dtype=torch.float32, device=images.device)
    _launch_affine(images, out, *sent(images, per_column, per_row))
    return out


def _launch_affine(images: Tensor, out: Tensor, columns: Tensor, rows: Tensor) -> None:
    batch, planes, height, width = images.shape
    parts = triton.cdiv(height * width, _LANES)
    scales = (2 / (32 * (width - 1)), 2 / (32 * (height - 1)), (width - 1) / 2, (height - 1) / 2)
    kinds = {"from_levels": images.dtype == torch.uint8, "lanes": _LANES}
    shape = (height, width, parts, planes)
    _affine_kernel[(batch * parts,)](images, out, columns, rows, *scales, *shape, **kinds, **EXACT)
