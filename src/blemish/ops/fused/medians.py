"""Medians of square windows, 32 planes at a time: one bit of 32 levels to a word, at the same place of each plane.

A median is found bit by bit from the top: a bit is set if more than half of the window is at least the median so far
with that bit. Comparing and counting are logic on whole words, so that one operation serves 32 windows.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from blemish.ops.fused.on_device import on_its_device

_LANES = 128

# Counters have 9 bits where half a window is below this, or 13 for larger ones.
_NARROW = 256
# The largest odd side whose windows fit.
LARGEST_MEDIAN = 89


@triton.jit(do_not_specialize=["planes", "radius", "stride", "size", "parts"])
def _split_kernel(levels, words, planes, height, width, radius, stride, size, parts, lanes: tl.constexpr):
    """Levels to words of bits, with the edges repeated around them."""
    number = tl.program_id(0) // parts
    group = number.to(tl.int64)
    index = (tl.program_id(0) - number * parts) * lanes + tl.arange(0, lanes)
    inside = index < size
    row = index // stride
    column = tl.minimum(tl.maximum(index - row * stride - radius, 0), width - 1)
    pixel = tl.minimum(tl.maximum(row - radius, 0), height - 1) * width + column
    b0 = tl.zeros((lanes,), tl.int32)
    b1, b2, b3, b4, b5, b6, b7 = b0, b0, b0, b0, b0, b0, b0
    for member in range(tl.minimum(planes - number * 32, 32)):
        level = tl.load(levels + (group * 32 + member) * (height * width) + pixel, inside, other=0).to(tl.int32)
        b0 |= (level & 1) << member
        b1 |= ((level >> 1) & 1) << member
        b2 |= ((level >> 2) & 1) << member
        b3 |= ((level >> 3) & 1) << member
        b4 |= ((level >> 4) & 1) << member
        b5 |= ((level >> 5) & 1) << member
        b6 |= ((level >> 6) & 1) << member
        b7 |= ((level >> 7) & 1) << member
    out = words + group * 8 * size
    tl.store(out + index, b0, inside)
    out += size
    tl.store(out + index, b1, inside)
    out += size
    tl.store(out + index, b2, inside)
    out += size
    tl.store(out + index, b3, inside)
    out += size
    tl.store(out + index, b4, inside)
    out += size
    tl.store(out + index, b5, inside)
    out += size
    tl.store(out + index, b6, inside)
    out += size
    tl.store(out + index, b7, inside)


@triton.jit
def _upwards(least, word, bit):
    """A comparison of lower bits goes on with the next: what is at least `bit`, or equal and at least so below."""
    return (least & word) | ((least | word) & ~bit)


@triton.jit
def _at_least(corner, index, size, m1, m2, m3, m4, m5, m6, m7, low: tl.constexpr):
    """Which levels are at least the number with these upper bits and bit `low`, and with none below."""
    out = tl.load(corner + low * size + index)
    if low < 1:
        out = _upwards(out, tl.load(corner + size + index), m1)
    if low < 2:
        out = _upwards(out, tl.load(corner + 2 * size + index), m2)
    if low < 3:
        out = _upwards(out, tl.load(corner + 3 * size + index), m3)
    if low < 4:
        out = _upwards(out, tl.load(corner + 4 * size + index), m4)
    if low < 5:
        out = _upwards(out, tl.load(corner + 5 * size + index), m5)
    if low < 6:
        out = _upwards(out, tl.load(corner + 6 * size + index), m6)
    if low < 7:
        out = _upwards(out, tl.load(corner + 7 * size + index), m7)
    return out


@triton.jit
def _counted(one, two, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, wide: tl.constexpr):
    """Counters, the bits of each in as many words, after two more bits; without `wide` they end at c8."""
    carry = (one & two) | ((one | two) & c0)
    c0 = c0 ^ one ^ two
    c1, carry = c1 ^ carry, c1 & carry
    c2, carry = c2 ^ carry, c2 & carry
    c3, carry = c3 ^ carry, c3 & carry
    c4, carry = c4 ^ carry, c4 & carry
    c5, carry = c5 ^ carry, c5 & carry
    c6, carry = c6 ^ carry, c6 & carry
    c7, carry = c7 ^ carry, c7 & carry
    c8, carry = c8 ^ carry, c8 & carry
    if wide:
        c9, carry = c9 ^ carry, c9 & carry
        c10, carry = c10 ^ carry, c10 & carry
        c11, carry = c11 ^ carry, c11 & carry
        c12 = c12 ^ carry
    return c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12


@triton.jit
def _bit(words, index, size, stride, radius, start, m1, m2, m3, m4, m5, m6, m7, low: tl.constexpr, wide: tl.constexpr):
    """Bit `low` of the medians, given those above it. Counters begin so that they reach the last bit past one half."""
    none = tl.zeros_like(index)
    c0, c1, c2, c3 = none - (start & 1), none - ((start >> 1) & 1), none - ((start >> 2) & 1), none - ((start >> 3) & 1)
    c4, c5, c6 = none - ((start >> 4) & 1), none - ((start >> 5) & 1), none - ((start >> 6) & 1)
    c7, c8, c9 = none - ((start >> 7) & 1), none - ((start >> 8) & 1), none - ((start >> 9) & 1)
    c10, c11, c12 = none - ((start >> 10) & 1), none - ((start >> 11) & 1), none
    for down in range(2 * radius + 1):
        corner = words + down * stride
        for pair in range(radius + 1):
            left = corner + 2 * pair
            one = _at_least(left, index, size, m1, m2, m3, m4, m5, m6, m7, low)
            # The last pair's second lies outside of the window.
            two = _at_least(left + 1, index, size, m1, m2, m3, m4, m5, m6, m7, low) & tl.where(pair < radius, -1, 0)
            c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12 = _counted(
                one, two, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, wide
            )
    return c12 if wide else c8


@triton.jit(do_not_specialize=["planes", "radius", "stride", "size", "start", "parts"])
def _median_kernel(
    words,
    out,
    planes,
    height,
    width,
    radius,
    stride,
    size,
    start,
    parts,
    wide: tl.constexpr,
    lanes: tl.constexpr,
):
    number = tl.program_id(0) // parts
    group = number.to(tl.int64)
    pixel = (tl.program_id(0) - number * parts) * lanes + tl.arange(0, lanes)
    inside = pixel < height * width
    row = pixel // width
    index = tl.where(inside, row * stride + (pixel - row * width), 0)
    words += group * 8 * size
    none = tl.zeros_like(index)
    m7 = _bit(words, index, size, stride, radius, start, none, none, none, none, none, none, none, 7, wide)
    m6 = _bit(words, index, size, stride, radius, start, none, none, none, none, none, none, m7, 6, wide)
    m5 = _bit(words, index, size, stride, radius, start, none, none, none, none, none, m6, m7, 5, wide)
    m4 = _bit(words, index, size, stride, radius, start, none, none, none, none, m5, m6, m7, 4, wide)
    m3 = _bit(words, index, size, stride, radius, start, none, none, none, m4, m5, m6, m7, 3, wide)
    m2 = _bit(words, index, size, stride, radius, start, none, none, m3, m4, m5, m6, m7, 2, wide)
    m1 = _bit(words, index, size, stride, radius, start, none, m2, m3, m4, m5, m6, m7, 1, wide)
    m0 = _bit(words, index, size, stride, radius, start, m1, m2, m3, m4, m5, m6, m7, 0, wide)
    for member in range(tl.minimum(planes - number * 32, 32)):
        level = ((m0 >> member) & 1) | (((m1 >> member) & 1) << 1) | (((m2 >> member) & 1) << 2)
        level |= (((m3 >> member) & 1) << 3) | (((m4 >> member) & 1) << 4) | (((m5 >> member) & 1) << 5)
        level |= (((m6 >> member) & 1) << 6) | (((m7 >> member) & 1) << 7)
        tl.store(out + (group * 32 + member) * (height * width) + pixel, level.to(tl.uint8), inside)


@on_its_device
def medians(levels: Tensor, radius: int) -> Tensor:
    """What `blemish.ops.rank.median_filter` gives, for windows of at most `LARGEST_MEDIAN` pixels a side."""
    levels = levels.contiguous()
    height, width = levels.shape[-2:]
    planes = levels.shape[0] * levels.shape[1]
    groups = triton.cdiv(planes, 32)
    stride = width + 2 * radius
    size = (height + 2 * radius) * stride
    # One more, as windows are read in pairs.
    words = torch.empty(groups * 8 * size + 1, dtype=torch.int32, device=levels.device)
    out = torch.empty_like(levels)
    parts = triton.cdiv(size, _LANES)
    _split_kernel[(groups * parts,)](levels, words, planes, height, width, radius, stride, size, parts, lanes=_LANES)
    half = (2 * radius + 1) ** 2 // 2
    wide = half >= _NARROW
    start = (4096 if wide else 256) - half - 1
    parts = triton.cdiv(height * width, _LANES)
    _median_kernel[(groups * parts,)](
        words, out, planes, height, width, radius, stride, size, start, parts, wide=wide, lanes=_LANES
    )
    return out
