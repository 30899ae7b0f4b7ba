"""Noise on levels at once: words, values made of them, sums and truncation in one kernel.

Levels and results are (B, values of an image) uint8, keys (4, B) int32, settings (B,): as in
`blemish.ops.compiled.noise`, whose bits these are. Values drawn for whole pixels serve ``channels`` planes.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.fused.levels import EXACT, level, unit
from blemish.ops.fused.on_device import kept, on_its_device, sent
from blemish.ops.fused.pixels import few_photons, many_photons
from blemish.ops.fused.words import four_words, half_words, normal

_LANES = 256


@triton.jit
def _add_normal(levels, out, word, table, scale, first, count, end, relative: tl.constexpr, lanes: tl.constexpr):
    sample = first + tl.arange(0, 2 * lanes)
    inside = (sample < count) & (sample < end)
    strength = normal(table, half_words(word), inside)
    value = unit(tl.load(levels + sample, inside, other=0))
    if relative:
        strength *= value
    tl.store(out + sample, level(tl.fma(strength, scale, value)), inside)


@triton.jit
def _normal_kernel(levels, out, keys, table, sigma, count, quarter, parts, relative: tl.constexpr, lanes: tl.constexpr):
    image = tl.program_id(0) // parts
    start = (tl.program_id(0) - image * parts) * lanes
    x, y, z, w = four_words(keys, image, start + tl.arange(0, lanes))
    scale = tl.load(sigma + image)
    levels += image.to(tl.int64) * count
    out += image.to(tl.int64) * count
    twice = 2 * quarter
    _add_normal(levels, out, x, table, scale, 2 * start, count, twice, relative, lanes)
    _add_normal(levels, out, y, table, scale, twice + 2 * start, count, 2 * twice, relative, lanes)
    _add_normal(levels, out, z, table, scale, 2 * twice + 2 * start, count, 3 * twice, relative, lanes)
    _add_normal(levels, out, w, table, scale, 3 * twice + 2 * start, count, 4 * twice, relative, lanes)


def _split(count: int) -> tuple[int, int]:
    """How many words a quarter of the stream has, and in how many parts an image's values are made."""
    quarter = -(-count // 8)
    return quarter, triton.cdiv(quarter, _LANES)


@on_its_device
def add_normal(
    levels: Tensor, out: Tensor, keys: NDArray[Any], table: NDArray[Any], sigma: NDArray[Any], relative: bool
) -> None:
    """Level + sigma · normal; where ``relative``, level + sigma · normal · level."""
    batch, count = levels.shape
    quarter, parts = _split(count)
    own_keys, scale = sent(levels, keys.T, sigma)
    shape = (count, quarter, parts)
    _normal_kernel[(batch * parts,)](
        levels, out, own_keys, kept(levels, table), scale, *shape, relative=relative, lanes=_LANES, **EXACT
    )


@triton.jit
def _impulse(levels, out, word, low, high, first, count, end, size, channels, inner: tl.constexpr, lanes: tl.constexpr):
    sample = first + tl.arange(0, 2 * lanes)
    inside = (sample < count) & (sample < end)
    rank = half_words(word)
    for channel in range(channels):
        kept_level = tl.load(levels + channel * size + sample, inside, other=0).to(tl.int32)
        if inner:
            # The lowest ranks are white, those just above black.
            value = tl.where(rank < low, 255, tl.where(rank < high, 0, kept_level))
        else:
            # The lowest ranks are white, the highest black.
            value = tl.where(rank < low, 255, tl.where(rank >= high, 0, kept_level))
        tl.store(out + channel * size + sample, value.to(tl.uint8), inside)


@triton.jit
def _impulse_kernel(
    levels, out, keys, white, black, count, quarter, channels, parts, inner: tl.constexpr, lanes: tl.constexpr
):
    image = tl.program_id(0) // parts
    start = (tl.program_id(0) - image * parts) * lanes
    x, y, z, w = four_words(keys, image, start + tl.arange(0, lanes))
    low = tl.load(white + image)
    high = tl.load(black + image)
    levels += image.to(tl.int64) * count * channels
    out += image.to(tl.int64) * count * channels
    twice = 2 * quarter
    _impulse(levels, out, x, low, high, 2 * start, count, twice, count, channels, inner, lanes)
    _impulse(levels, out, y, low, high, twice + 2 * start, count, 2 * twice, count, channels, inner, lanes)
    _impulse(levels, out, z, low, high, 2 * twice + 2 * start, count, 3 * twice, count, channels, inner, lanes)
    _impulse(levels, out, w, low, high, 3 * twice + 2 * start, count, 4 * twice, count, channels, inner, lanes)


@on_its_device
def impulses(levels: Tensor, out: Tensor, keys: NDArray[Any], white: NDArray[Any], hit: NDArray[Any]) -> None:
    """255 where the 16-bit rank is below white[b], else 0 where it is below hit[b], else the level; int32 bounds."""
    batch, count = levels.shape
    quarter, parts = _split(count)
    shape = (count, quarter, 1, parts)
    settings = sent(levels, keys.T, white, hit)
    _impulse_kernel[(batch * parts,)](levels, out, *settings, *shape, inner=True, lanes=_LANES)


@on_its_device
def salt_and_pepper(levels: Tensor, out: Tensor, keys: NDArray[Any], white: NDArray[Any], black: NDArray[Any]) -> None:
    """Whole pixels of (B, C, pixels): 255 where the 16-bit rank is below white[b], 0 where it is black[b] or more."""
    batch, channels, count = levels.shape
    quarter, parts = _split(count)
    shape = (count, quarter, channels, parts)
    settings = sent(levels, keys.T, white, black)
    _impulse_kernel[(batch * parts,)](levels, out, *settings, *shape, inner=False, lanes=_LANES)


@triton.jit
def _multiply(levels, out, word, limit, first, count, end, channels, lanes: tl.constexpr):
    sample = first + tl.arange(0, 2 * lanes)
    inside = (sample < count) & (sample < end)
    field = ((half_words(word).to(tl.float32) + 0.5) * 0.0000152587890625) * 2.0 - 1.0
    factor = field * limit + 1.0
    for channel in range(channels):
        value = unit(tl.load(levels + channel * count + sample, inside, other=0))
        tl.store(out + channel * count + sample, level(value * factor), inside)


@triton.jit
def _multiply_kernel(levels, out, keys, limits, count, quarter, channels, parts, lanes: tl.constexpr):
    image = tl.program_id(0) // parts
    start = (tl.program_id(0) - image * parts) * lanes
    x, y, z, w = four_words(keys, image, start + tl.arange(0, lanes))
    limit = tl.load(limits + image)
    levels += image.to(tl.int64) * count * channels
    out += image.to(tl.int64) * count * channels
    twice = 2 * quarter
    _multiply(levels, out, x, limit, 2 * start, count, twice, channels, lanes)
    _multiply(levels, out, y, limit, twice + 2 * start, count, 2 * twice, channels, lanes)
    _multiply(levels, out, z, limit, 2 * twice + 2 * start, count, 3 * twice, channels, lanes)
    _multiply(levels, out, w, limit, 3 * twice + 2 * start, count, 4 * twice, channels, lanes)


@on_its_device
def multiply_uniform(levels: Tensor, out: Tensor, keys: NDArray[Any], limit: NDArray[Any]) -> None:
    """Whole pixels of (B, C, pixels) times 1 + limit[b] · a value uniform in (−1, 1)."""
    batch, channels, count = levels.shape
    quarter, parts = _split(count)
    shape = (count, quarter, channels, parts)
    _multiply_kernel[(batch * parts,)](levels, out, *sent(levels, keys.T, limit), *shape, lanes=_LANES, **EXACT)


@triton.jit
def _count_photons(
    levels, out, word, table, tails, growth, light, switch, first, count, end, last: tl.constexpr, lanes: tl.constexpr
):
    sample = first + tl.arange(0, 2 * lanes)
    inside = (sample < count) & (sample < end)
    index = half_words(word)
    own = tl.load(levels + sample, inside, other=255).to(tl.int32)
    mean = unit(own) * light
    dark = mean < switch
    counts = many_photons(normal(table, index, inside), tl.maximum(mean, switch))
    if tl.max(dark.to(tl.int32), axis=0) > 0:
        here = inside & dark
        reached = tl.load(tails + index, here, other=0.0) * tl.load(growth + own, here, other=0.0) * 0.5
        counts = tl.where(dark, few_photons(reached, mean, last), counts)
    tl.store(out + sample, level(tl.div_rn(counts, light)), inside)


@triton.jit
def _poisson_kernel(
    levels, out, keys, table, tails, growth, kinds, photons, switch, count, quarter, parts,
    last: tl.constexpr, lanes: tl.constexpr,
):  # fmt: skip
    image = tl.program_id(0) // parts
    start = (tl.program_id(0) - image * parts) * lanes
    x, y, z, w = four_words(keys, image, start + tl.arange(0, lanes))
    light = tl.load(photons + image)
    growth += tl.load(kinds + image) * 256
    levels += image.to(tl.int64) * count
    out += image.to(tl.int64) * count
    twice = 2 * quarter
    _count_photons(levels, out, x, table, tails, growth, light, switch, 2 * start, count, twice, last, lanes)
    first = twice + 2 * start
    _count_photons(levels, out, y, table, tails, growth, light, switch, first, count, 2 * twice, last, lanes)
    first += twice
    _count_photons(levels, out, z, table, tails, growth, light, switch, first, count, 3 * twice, last, lanes)
    first += twice
    _count_photons(levels, out, w, table, tails, growth, light, switch, first, count, 4 * twice, last, lanes)


@on_its_device
def poisson(
    levels: Tensor,
    out: Tensor,
    keys: NDArray[Any],
    table: NDArray[Any],
    tails: NDArray[Any],
    growth: NDArray[Any],
    kinds: NDArray[Any],
    photons: NDArray[Any],
    switch: float,
) -> None:
    """Poisson counts over photons; see `blemish.ops.compiled.noise.poisson`."""
    batch, count = levels.shape
    quarter, parts = _split(count)
    own_keys, grown, own, light = sent(levels, keys.T, growth, kinds, photons)
    tables = (kept(levels, table), kept(levels, tails), grown, own, light)
    shape = (switch, count, quarter, parts)
    _poisson_kernel[(batch * parts,)](levels, out, own_keys, *tables, *shape, last=12, lanes=_LANES, **EXACT)
