"""Blurs of floats along lines."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from blemish.ops.fused.on_device import on_its_device

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
        entry = image * taps + tap
        row = tl.minimum(tl.maximum(y + tl.load(shifts + 2 * entry), 0), height - 1)
        column = tl.minimum(tl.maximum(x + tl.load(shifts + 2 * entry + 1), 0), width - 1)
        total += tl.load(weights + entry) * tl.load(images + plane + row * width + column, inside, other=0.0)
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
