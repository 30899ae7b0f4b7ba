"""Kernels on float images: quantising, Poisson counts, the mean of enlargements."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["poisson_counts", "quantised", "zoom_mean"]

_LANES = 1024


@triton.jit
def _quantise_kernel(values, out, slack, count, lanes: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * lanes + tl.arange(0, lanes)
    inside = place < count
    level = tl.load(values + place, inside, other=0.0) * 255.0 + slack
    # Written so that a value that is not a number becomes 0, as it does in the plain operations.
    level = tl.where(level > 0.0, tl.minimum(level, 255.0), 0.0)
    tl.store(out + place, level.to(tl.int32).to(tl.uint8), inside)


def quantised(images: Tensor, slack: float = 0.0) -> Tensor:
    """Floats in [0, 1] to uint8 by truncation, ``slack`` levels above."""
    images = images.contiguous()
    out = torch.empty(images.shape, dtype=torch.uint8, device=images.device)
    count = images.numel()
    _quantise_kernel[(triton.cdiv(count, _LANES),)](images, out, slack, count, lanes=_LANES)
    return out


@triton.jit
def _poisson_kernel(ranks, means, out, count, switch, last: tl.constexpr, lanes: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * lanes + tl.arange(0, lanes)
    inside = place < count
    rank = tl.load(ranks + place, inside, other=0.0)
    mean = tl.load(means + place, inside, other=1.0)
    bright = tl.maximum(mean, switch)
    root = tl.sqrt_rn(bright)
    square = rank * rank
    even = tl.div_rn((square * (1.0 / 270) + 7.0 / 810) * square - 8.0 / 405, bright)
    odd = tl.div_rn((square * -0.000316 - 0.006578) * square + 0.020312, bright)
    odd = (tl.div_rn(odd - square * (1.0 / 72) - 1.0 / 36, root) + root) * rank
    many = tl.maximum(tl.floor(even + odd + square * (1.0 / 6) + bright + 1.0 / 3), 0.0)
    dark = tl.minimum(mean, switch)
    target = (tl.erf(rank * 0.7071067811865476) + 1.0) * tl.exp(dark) * 0.5
    few = tl.zeros_like(mean)
    total = few + 1.0
    power = few + 1.0
    factorial = 1.0
    for k in tl.static_range(1, last + 1):
        few += tl.where(target > total, 1.0, 0.0)
        power *= dark
        factorial *= k
        total += power * (1.0 / factorial)
    tl.store(out + place, tl.where(mean < switch, few, many), inside)


def poisson_counts(rank: Tensor, mean: Tensor, switch: float, last: int) -> Tensor:
    """What `blemish.ops.poisson.poisson_quantile` gives."""
    rank, mean = rank.contiguous(), mean.contiguous()
    out = torch.empty_like(mean)
    count = mean.numel()
    _poisson_kernel[(triton.cdiv(count, _LANES),)](rank, mean, out, count, switch, last=last, lanes=_LANES)
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


def zoom_mean(images: Tensor, rows: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor]) -> Tensor:
    """The mean of images (B, C, H, W) and enlargements, each given by the upper of two rows and the lower one's share.

    ``rows`` are (F, H), ``columns`` (F, W); int32 places and float32 shares.
    """
    images = images.contiguous()
    height, width = images.shape[-2:]
    out = torch.empty_like(images)
    parts = triton.cdiv(height * width, 512)
    shape = (len(rows[0]), height, width, parts)
    _zoom_kernel[(images.shape[0] * images.shape[1] * parts,)](images, out, *rows, *columns, *shape, lanes=512)
    return out
