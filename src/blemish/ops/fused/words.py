"""Kernels on whole numbers: random words, and the sources of glass blur."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from blemish.ops.fused.place import on_its_device

__all__ = ["expanded", "glass_sources"]

_LANES = 1024


@triton.jit
def _fold(word):
    return word ^ ((word >> 16) & 0xFFFF)


@triton.jit
def _expand_kernel(keys, out, quarter, batch, parts, lanes: tl.constexpr):
    image = tl.program_id(0) // parts
    place = (tl.program_id(0) - image * parts) * lanes + tl.arange(0, lanes)
    k0 = tl.load(keys + image)
    k1 = tl.load(keys + batch + image)
    k2 = tl.load(keys + 2 * batch + image)
    k3 = tl.load(keys + 3 * batch + image)
    x = place + k0
    y = x * (k2 | 1) + k1
    z = x * y + k2
    w = y * z + k3
    x, y, z, w = _fold(x), _fold(y), _fold(z), _fold(w)
    x += y * w
    y += z * x
    z += x * y
    w += y * z
    inside = place < quarter
    first = out + image.to(tl.int64) * 4 * quarter + place
    tl.store(first, _fold(x), inside)
    tl.store(first + quarter, _fold(y), inside)
    tl.store(first + 2 * quarter, _fold(z), inside)
    tl.store(first + 3 * quarter, _fold(w), inside)


@on_its_device
def expanded(keys: Tensor, quarter: int) -> Tensor:
    """The words of `blemish.core.rng`, (B, 4 · quarter) int32, from keys (4, B) int32."""
    batch = keys.shape[1]
    out = torch.empty(batch, 4 * quarter, dtype=torch.int32, device=keys.device)
    parts = triton.cdiv(quarter, _LANES)
    _expand_kernel[(batch * parts,)](keys, out, quarter, batch, parts, lanes=_LANES)
    return out


@triton.jit
def _glass_kernel(dy, dx, delta, out, passes, height, width, parts, lanes: tl.constexpr):
    image = tl.program_id(0) // parts
    size = height * width
    reach = tl.load(delta + image)
    pixel = (tl.program_id(0) - image * parts) * lanes + tl.arange(0, lanes)
    inside = pixel < size
    at = tl.where(inside, pixel, 0)
    # The last pass comes first: where a pixel's value stood before it, and before that.
    for back in range(passes):
        field = (image.to(tl.int64) * passes + passes - 1 - back) * size
        going = inside
        while tl.max(going.to(tl.int32), axis=0) > 0:
            row = at // width
            column = at - row * width
            visited = (row > reach) & (row <= height - reach) & (column > reach) & (column <= width - reach)
            asked = going & visited
            down = tl.load(dy + field + at, asked, other=0).to(tl.int32)
            right = tl.load(dx + field + at, asked, other=0).to(tl.int32)
            moved = down * width + right
            at += moved
            # A source further on was visited before, so its own source counts.
            going = asked & (moved > 0)
    tl.store(out + image.to(tl.int64) * size + pixel, at, inside)


@on_its_device
def glass_sources(dy: Tensor, dx: Tensor, delta: Tensor) -> Tensor:
    """What `blemish.ops.shuffle.shuffle_sources` gives, as int32; ``delta`` is int32 on the device."""
    batch, passes, height, width = dy.shape
    out = torch.empty(batch, height * width, dtype=torch.int32, device=dy.device)
    parts = triton.cdiv(height * width, 256)
    shape = (passes, height, width, parts)
    _glass_kernel[(batch * parts,)](dy.contiguous(), dx.contiguous(), delta, out, *shape, lanes=256)
    return out
