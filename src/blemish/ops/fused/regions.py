"""Kernels on connected regions of pixels, as trees in one array: a pixel points to one before it, a root to itself.

Trees are joined with atomic minima, which needs no rounds that wait for each other: whoever lowers a pointer that was
no root's goes on to join what it pointed to. So a pointer that was read too early costs a step and does no harm.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from blemish.ops.fused.on_device import on_its_device

_LANES = 256


@triton.jit
def _here(count, parts, lanes: tl.constexpr):
    """The first place of this program's image, its pixels, and which of them there are."""
    image = tl.program_id(0) // parts
    pixel = (tl.program_id(0) - image * parts) * lanes + tl.arange(0, lanes)
    return image.to(tl.int64) * count, pixel, pixel < count


@triton.jit
def _links(weak, pixel, stride, here):
    """A weak neighbour before each pixel, or itself, and where that on the upper right has to be joined as well.

    The one above touches all others that come before; of the rest, only the upper right one stands apart.
    """
    left = tl.load(weak + pixel - 1, here, other=0) != 0
    corner = tl.load(weak + pixel - stride - 1, here, other=0) != 0
    above = tl.load(weak + pixel - stride, here, other=0) != 0
    right = tl.load(weak + pixel - stride + 1, here, other=0) != 0
    parent = tl.where(right, pixel - stride + 1, pixel)
    parent = tl.where(left, pixel - 1, parent)
    parent = tl.where(corner, pixel - stride - 1, parent)
    parent = tl.where(above, pixel - stride, parent)
    return parent, here & right & (left | corner) & (above == 0)


@triton.jit
def _root(parents, at, going):
    """Up the trees, for those that are to go; the others stay where they are."""
    while tl.max(going.to(tl.int32), axis=0) > 0:
        parent = tl.load(parents + at, going, other=0)
        going = going & (parent != at)
        at = tl.where(going, parent, at)
    return at


@triton.jit
def _plant_kernel(weak, parents, count, stride, parts, lanes: tl.constexpr):
    plane, pixel, inside = _here(count, parts, lanes)
    here = tl.load(weak + plane + pixel, inside, other=0) != 0
    parent, _ = _links(weak + plane, pixel, stride, here)
    tl.store(parents + plane + pixel, parent, here)


@triton.jit
def _join_kernel(weak, parents, count, stride, parts, lanes: tl.constexpr):
    plane, pixel, inside = _here(count, parts, lanes)
    here = tl.load(weak + plane + pixel, inside, other=0) != 0
    _, going = _links(weak + plane, pixel, stride, here)
    parents += plane
    one, two = pixel, pixel - stride + 1
    while tl.max(going.to(tl.int32), axis=0) > 0:
        one = _root(parents, one, going)
        two = _root(parents, two, going)
        high, low = tl.maximum(one, two), tl.minimum(one, two)
        going = going & (high != low)
        before = tl.atomic_min(parents + high, low, going, sem="relaxed")
        going = going & (before != high)
        one = tl.where(going, before, one)
        two = tl.where(going, low, two)


@triton.jit
def _mark_kernel(strong, parents, out, count, parts, lanes: tl.constexpr):
    plane, pixel, inside = _here(count, parts, lanes)
    here = tl.load(strong + plane + pixel, inside, other=0) != 0
    root = _root(parents + plane, pixel, here)
    tl.store(out + plane + root, tl.full((lanes,), 1, tl.uint8), here)


@triton.jit
def _spread_kernel(weak, parents, out, count, parts, lanes: tl.constexpr):
    plane, pixel, inside = _here(count, parts, lanes)
    here = tl.load(weak + plane + pixel, inside, other=0) != 0
    root = _root(parents + plane, pixel, here)
    # Only roots are read, and those are written as they are.
    tl.store(out + plane + pixel, tl.load(out + plane + root, here, other=0), here)


@on_its_device
def connected(strong: Tensor, weak: Tensor) -> Tensor:
    """The weak pixels that a chain of weak neighbours, diagonal ones included, joins to a strong one.

    All are bool (…, H, W). Strong pixels are weak as well, and none lies in the outermost rows and columns.
    """
    rows, stride = weak.shape[-2:]
    count = rows * stride
    seeds, weak = strong.contiguous().view(torch.uint8), weak.contiguous().view(torch.uint8)
    parents = torch.empty(weak.shape, dtype=torch.int32, device=weak.device)
    out = torch.zeros_like(weak)
    parts = triton.cdiv(count, _LANES)
    grid = (weak.numel() // count * parts,)
    _plant_kernel[grid](weak, parents, count, stride, parts, lanes=_LANES)
    _join_kernel[grid](weak, parents, count, stride, parts, lanes=_LANES)
    _mark_kernel[grid](seeds, parents, out, count, parts, lanes=_LANES)
    _spread_kernel[grid](weak, parents, out, count, parts, lanes=_LANES)
    return out.view(torch.bool)
