"""Kernels that gather from neighbours: blurs along lines and with Gaussians, the mean of enlargements."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from blemish.ops.fused.place import on_its_device

__all__ = ["gaussian_rows_and_columns", "line_sums", "zoom_mean"]

_LANES = 512


@triton.jit
def _line_kernel(images, out, shifts, weights, taps, channels, height, width, parts, lanes: tl.constexpr):
    number = tl.program_id(0) // parts
    image = number // channels
    plane = number.to(tl.int64) * height * width
    pixel = (tl.program_id(0) - number * parts) * lanes + tl.arange(0, lanes)
    inside = pixel < height * width
    y = pixel // width
    x = pixel - y * width
    total = tl.zeros((lanes,), tl.float32)
    for tap in range(taps):
        place = image * taps + tap
        row = tl.minimum(tl.maximum(y + tl.load(shifts + 2 * place), 0), height - 1)
        column = tl.minimum(tl.maximum(x + tl.load(shifts + 2 * place + 1), 0), width - 1)
        total += tl.load(weights + place) * tl.load(images + plane + row * width + column, inside, other=0.0)
    tl.store(out + plane + pixel, total, inside)


@on_its_device
def line_sums(images: Tensor, shifts: Tensor, weights: Tensor) -> Tensor:
    """Weighted sums of shifted copies; shifts (B, taps, 2) int32, weights (B, taps) float32, edges replicated."""
    images = images.contiguous()
    batch, channels, height, width = images.shape
    out = torch.empty_like(images)
    parts = triton.cdiv(height * width, _LANES)
    shape = (weights.shape[1], channels, height, width, parts)
    _line_kernel[(batch * channels * parts,)](images, out, shifts, weights, *shape, lanes=_LANES)
    return out


@triton.jit
def _mirrored(place, size, reflect):
    """A position beyond a border: the edge's, or the mirror image's with the edge repeated, for up to one size."""
    mirror = tl.where(place < 0, -1 - place, tl.where(place >= size, 2 * size - 1 - place, place))
    edge = tl.minimum(tl.maximum(place, 0), size - 1)
    return tl.where(reflect != 0, mirror, edge)


@triton.jit
def _taps_kernel(images, out, weights, radii, room, reflect, channels, height, width, down, parts, lanes: tl.constexpr):
    number = tl.program_id(0) // parts
    image = number // channels
    plane = number.to(tl.int64) * height * width
    pixel = (tl.program_id(0) - number * parts) * lanes + tl.arange(0, lanes)
    inside = pixel < height * width
    y = pixel // width
    x = pixel - y * width
    weight = weights + image * room
    total = tl.load(weight) * tl.load(images + plane + pixel, inside, other=0.0)
    for step in range(1, tl.load(radii + image) + 1):
        if down:
            before = _mirrored(y - step, height, reflect) * width + x
            after = _mirrored(y + step, height, reflect) * width + x
        else:
            before = y * width + _mirrored(x - step, width, reflect)
            after = y * width + _mirrored(x + step, width, reflect)
        both = tl.load(images + plane + before, inside, other=0.0) + tl.load(images + plane + after, inside, other=0.0)
        total += tl.load(weight + step) * both
    tl.store(out + plane + pixel, total, inside)


@on_its_device
def gaussian_rows_and_columns(images: Tensor, weights: Tensor, radii: Tensor, reflect: bool) -> Tensor:
    """A symmetric filter along columns, then rows: weights (B, room) float32 from the centre on, radii (B,) int32.

    Radii may not exceed the sides; beyond them the edge is repeated, or the image mirrored with its edge.
    """
    batch, channels, height, width = images.shape
    parts = triton.cdiv(height * width, _LANES)
    for down in (1, 0):
        images = images.contiguous()
        out = torch.empty_like(images)
        shape = (weights.shape[1], int(reflect), channels, height, width)
        _taps_kernel[(batch * channels * parts,)](images, out, weights, radii, *shape, down, parts, lanes=_LANES)
        images = out
    return images


@triton.jit
def _mix(first, second, share):
    return tl.where(share < 0.5, first + share * (second - first), second - (second - first) * (1.0 - share))


@triton.jit
def _zoom_kernel(
    images, out, rows, row_shares, columns, column_shares, factors, height, width, parts, lanes: tl.constexpr
):
    number = tl.program_id(0) // parts
    plane = number.to(tl.int64) * height * width
    pixel = (tl.program_id(0) - number * parts) * lanes + tl.arange(0, lanes)
    inside = pixel < height * width
    y = pixel // width
    x = pixel - y * width
    total = tl.load(images + plane + pixel, inside, other=0.0)
    for factor in range(factors):
        top = tl.load(rows + factor * height + y, inside, other=0)
        down = tl.load(row_shares + factor * height + y, inside, other=0.0)
        left = tl.load(columns + factor * width + x, inside, other=0)
        right = tl.load(column_shares + factor * width + x, inside, other=0.0)
        corner = images + plane + top * width + left
        below = tl.where(top + 1 < height, width, 0)
        beside = tl.where(left + 1 < width, 1, 0)
        first = _mix(tl.load(corner, inside, other=0.0), tl.load(corner + below, inside, other=0.0), down)
        corner += beside
        second = _mix(tl.load(corner, inside, other=0.0), tl.load(corner + below, inside, other=0.0), down)
        total += _mix(first, second, right)
    tl.store(out + plane + pixel, tl.div_rn(total, factors + 1.0), inside)


@on_its_device
def zoom_mean(images: Tensor, rows: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor]) -> Tensor:
    """The mean of images (B, C, H, W) and enlargements, each given by the upper of two rows and the lower one's share.

    ``rows`` are (F, H), ``columns`` (F, W); int32 places and float32 shares.
    """
    images = images.contiguous()
    height, width = images.shape[-2:]
    out = torch.empty_like(images)
    parts = triton.cdiv(height * width, _LANES)
    shape = (len(rows[0]), height, width, parts)
    _zoom_kernel[(images.shape[0] * images.shape[1] * parts,)](images, out, *rows, *columns, *shape, lanes=_LANES)
    return out
