"""Kernels on the values of images, one by one: between levels and floats, and Poisson counts."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from blemish.ops.fused.levels import EXACT
from blemish.ops.fused.on_device import on_its_device

_LANES = 1024


@triton.jit
def _quantise_kernel(values, out, slack, count, lanes: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * lanes + tl.arange(0, lanes)
    inside = index < count
    level = tl.fma(tl.load(values + index, inside, other=0.0), 255.0, slack)
    # Written so that a value that is not a number becomes 0, as it does in the plain operations.
    level = tl.where(level > 0.0, tl.minimum(level, 255.0), 0.0)
    tl.store(out + index, level.to(tl.int32).to(tl.uint8), inside)


@on_its_device
def quantised(images: Tensor, slack: float = 0.0) -> Tensor:
    """Floats in [0, 1] to uint8 by truncation, ``slack`` levels above."""
    images = images.contiguous()
    out = torch.empty(images.shape, dtype=torch.uint8, device=images.device)
    count = images.numel()
    _quantise_kernel[(triton.cdiv(count, _LANES),)](images, out, slack, count, lanes=_LANES)
    return out


@triton.jit
def many_photons(rank, mean):
    """The normal expansion of the quantile."""
    root = tl.sqrt_rn(mean)
    square = rank * rank
    even = tl.div_rn((square * (1.0 / 270) + 7.0 / 810) * square - 8.0 / 405, mean)
    odd = tl.div_rn((square * -0.000316 - 0.006578) * square + 0.020312, mean)
    odd = (tl.div_rn(tl.fma(square, -1.0 / 72, odd) - 1.0 / 36, root) + root) * rank
    return tl.maximum(tl.floor(tl.fma(square, 1.0 / 6, even + odd) + mean + 1.0 / 3), 0.0)


@triton.jit
def few_photons(reached, mean, last: tl.constexpr):
    """How many partial sums of meanᵏ/k! lie below what is reached."""
    few = tl.zeros_like(mean)
    total = few + 1.0
    power = few + 1.0
    factorial = 1.0
    for k in tl.static_range(1, last + 1):
        few += tl.where(reached > total, 1.0, 0.0)
        power *= mean
        factorial *= k
        total = tl.fma(power, 1.0 / factorial, total)
    return few


@triton.jit
def _poisson_kernel(ranks, means, out, count, switch, last: tl.constexpr, lanes: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * lanes + tl.arange(0, lanes)
    inside = index < count
    rank = tl.load(ranks + index, inside, other=0.0)
    mean = tl.load(means + index, inside, other=1.0)
    many = many_photons(rank, tl.maximum(mean, switch))
    dark = tl.minimum(mean, switch)
    few = few_photons((tl.erf(rank * 0.7071067811865476) + 1.0) * tl.exp(dark) * 0.5, dark, last)
    tl.store(out + index, tl.where(mean < switch, few, many), inside)


@on_its_device
def poisson_counts(rank: Tensor, mean: Tensor, switch: float, last: int) -> Tensor:
    """What `blemish.ops.poisson.poisson_quantile` gives."""
    rank, mean = rank.contiguous(), mean.contiguous()
    out = torch.empty_like(mean)
    count = mean.numel()
    _poisson_kernel[(triton.cdiv(count, _LANES),)](rank, mean, out, count, switch, last=last, lanes=_LANES, **EXACT)
    return out


@triton.jit
def _normalise_kernel(levels, out, means, stds, size, channels, count, lanes: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * lanes + tl.arange(0, lanes)
    inside = index < count
    channel = index // size % channels
    value = tl.load(levels + index, inside, other=0).to(tl.float32) * (1.0 / 255)
    value = tl.div_rn(value - tl.load(means + channel, inside, other=0.0), tl.load(stds + channel, inside, other=1.0))
    tl.store(out + index, value, inside)


@on_its_device
def normalised(levels: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """(level/255 − mean) / std of uint8 images (B, C, H, W), with a number per channel."""
    levels = levels.contiguous()
    _, channels, height, width = levels.shape
    out = torch.empty(levels.shape, dtype=torch.float32, device=levels.device)
    shape = (height * width, channels, levels.numel())
    grid = (triton.cdiv(levels.numel(), _LANES),)
    _normalise_kernel[grid](
        levels, out, mean.expand(channels).contiguous(), std.expand(channels).contiguous(), *shape, lanes=_LANES
    )
    return out
