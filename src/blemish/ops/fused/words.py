"""Random words, and values made of them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from blemish.ops.fused.levels import EXACT
from blemish.ops.fused.on_device import on_its_device

_LANES = 1024
_VALUE_LANES = 256


@triton.jit
def _fold(word):
    return word ^ ((word >> 16) & 0xFFFF)


@triton.jit
def four_words(keys, image, index):
    """The words of `blemish.core.rng` at these places of an image's four quarters; keys are (B, 4)."""
    k0 = tl.load(keys + 4 * image)
    k1 = tl.load(keys + 4 * image + 1)
    k2 = tl.load(keys + 4 * image + 2)
    k3 = tl.load(keys + 4 * image + 3)
    x = index + k0
    y = x * (k2 | 1) + k1
    z = x * y + k2
    w = y * z + k3
    x, y, z, w = _fold(x), _fold(y), _fold(z), _fold(w)
    x += y * w
    y += z * x
    z += x * y
    w += y * z
    return _fold(x), _fold(y), _fold(z), _fold(w)


@triton.jit
def half_words(word):
    """The 16-bit halves of words, side by side: twice as many values."""
    return tl.interleave(word & 0xFFFF, (word >> 16) & 0xFFFF)


@triton.jit
def one_rank(keys, image, value, quarter):
    """The 16-bit value of that number in an image's stream, wherever it stands."""
    word = value // 2
    share = word // quarter
    x, y, z, w = four_words(keys, image, word - share * quarter)
    chosen = tl.where(share == 0, x, tl.where(share == 1, y, tl.where(share == 2, z, w)))
    return tl.where(value % 2 == 0, chosen, chosen >> 16) & 0xFFFF


@triton.jit
def normal(table, rank, inside):
    """The normal value of a 16-bit rank. The table's second half is its first, mirrored with the other sign."""
    upper = rank >= 32768
    value = tl.load(table + tl.where(upper, 65535 - rank, rank), inside, other=0.0)
    return tl.where(upper, -value, value)


@triton.jit
def _expand_kernel(keys, out, quarter, parts, lanes: tl.constexpr):
    image = tl.program_id(0) // parts
    index = (tl.program_id(0) - image * parts) * lanes + tl.arange(0, lanes)
    x, y, z, w = four_words(keys, image, index)
    inside = index < quarter
    first = out + image.to(tl.int64) * 4 * quarter + index
    tl.store(first, x, inside)
    tl.store(first + quarter, y, inside)
    tl.store(first + 2 * quarter, z, inside)
    tl.store(first + 3 * quarter, w, inside)


@on_its_device
def expanded(keys: Tensor, quarter: int) -> Tensor:
    """The words of `blemish.core.rng`, (B, 4 · quarter) int32, from keys (B, 4) int32."""
    batch = len(keys)
    out = torch.empty(batch, 4 * quarter, dtype=torch.int32, device=keys.device)
    parts = triton.cdiv(quarter, _LANES)
    _expand_kernel[(batch * parts,)](keys, out, quarter, parts, lanes=_LANES)
    return out


@triton.jit
def _store_values(out, word, table, first, count, quarter_end, kind: tl.constexpr, lanes: tl.constexpr):
    rank = half_words(word)
    index = first + tl.arange(0, 2 * lanes)
    inside = (index < count) & (index < quarter_end)
    if kind == 0:
        value = normal(table, rank, inside)
    elif kind == 1:
        value = (rank.to(tl.float32) + 0.5) * 0.0000152587890625
    else:
        value = (rank.to(tl.float32) + 0.5) * 0.000030517578125 - 1.0
    tl.store(out + index, value, inside)


@triton.jit
def _values_kernel(keys, out, table, count, quarter, parts, kind: tl.constexpr, lanes: tl.constexpr):
    image = tl.program_id(0) // parts
    start = (tl.program_id(0) - image * parts) * lanes
    x, y, z, w = four_words(keys, image, start + tl.arange(0, lanes))
    out += image.to(tl.int64) * count
    twice = 2 * quarter
    _store_values(out, x, table, 2 * start, count, twice, kind, lanes)
    _store_values(out, y, table, twice + 2 * start, count, 2 * twice, kind, lanes)
    _store_values(out, z, table, 2 * twice + 2 * start, count, 3 * twice, kind, lanes)
    _store_values(out, w, table, 3 * twice + 2 * start, count, 4 * twice, kind, lanes)


def _values(keys: Tensor, count: int, table: Tensor, kind: int) -> Tensor:
    batch, quarter = len(keys), -(-count // 8)
    out = torch.empty(batch, count, dtype=torch.float32, device=keys.device)
    parts = triton.cdiv(quarter, _VALUE_LANES)
    shape = (count, quarter, parts)
    _values_kernel[(batch * parts,)](keys, out, table, *shape, kind=kind, lanes=_VALUE_LANES, **EXACT)
    return out


@on_its_device
def normals(keys: Tensor, count: int, table: Tensor) -> Tensor:
    """Standard normal values (B, count) from the table of 2¹⁶, float32."""
    return _values(keys, count, table, 0)


@on_its_device
def coarse_uniforms(keys: Tensor, count: int, symmetric: bool) -> Tensor:
    """Values (B, count) strictly inside (0, 1), float32 of 16 random bits; inside (−1, 1) where ``symmetric``."""
    return _values(keys, count, keys, 2 if symmetric else 1)
