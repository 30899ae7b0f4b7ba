"""Levels from a table of what becomes of each, and levels in and around rectangles."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from blemish.ops.fused.levels import here
from blemish.ops.fused.place import on_its_device

__all__ = ["looked_up"]

_LANES = 2048


@triton.jit
def _lookup_kernel(levels, out, tables, size, parts, lanes: tl.constexpr):
    plane, pixel, inside = here(size, parts, lanes)
    first = plane.to(tl.int64) * size
    index = tl.load(levels + first + pixel, inside, other=0).to(tl.int32)
    tl.store(out + first + pixel, tl.load(tables + plane * 256 + index, inside, other=0), inside)


@on_its_device
def looked_up(levels: Tensor, tables: Tensor) -> Tensor:
    """What uint8 tables (B, C, 256) say of each level of images (B, C, H, W)."""
    levels, out = levels.contiguous(), torch.empty(levels.shape, dtype=torch.uint8, device=levels.device)
    size = levels.shape[-1] * levels.shape[-2]
    parts = triton.cdiv(size, _LANES)
    _lookup_kernel[(levels.numel() // size * parts,)](levels, out, tables.contiguous(), size, parts, lanes=_LANES)
    return out
