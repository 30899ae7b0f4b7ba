"""Kernels that gather from neighbours: blurs along lines, the mean of enlargements."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from blemish.ops.fused.place import on_its_device

__all__ = ["line_sums", "zoom_mean"]

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
