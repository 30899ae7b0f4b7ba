"""Noise on levels at once: words, values made of them, sums and truncation, without an image of floats in between.

Levels and results are (B, values of an image) uint8, keys (4, B) int32, settings (B,) float64. Picking from a table
is a loop of its own, because the others are then done several values at a time.
"""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import fma, kernel, part, shareable
from blemish.ops.compiled.levels import level, unit
from blemish.ops.compiled.words import BLOCK, fill

_F = np.float32


@part
def _quarter(count):
    return ((count + 1) // 2 + 3) // 4


@shareable("table", "relative")
def add_normal(levels, out, keys, table, sigma, relative):
    """Level + sigma · normal; where ``relative``, level + sigma · normal · level."""
    count = levels.shape[1]
    quarter = _quarter(count)
    words = np.empty((4, BLOCK), np.uint32)
    halves = words.view(np.uint16)
    field = np.empty(2 * BLOCK, np.float32)
    for image in range(len(levels)):
        scale = _F(sigma[image])
        for start in range(0, quarter, BLOCK):
            size = min(BLOCK, quarter - start)
            fill(keys, image, start, size, words[0], words[1], words[2], words[3])
            for share in range(4):
                first = 2 * (share * quarter + start)
                index = halves[share]
                source = levels[image, first : first + 2 * size]
                target = out[image, first : first + 2 * size]
                for i in range(len(source)):
                    field[i] = table[index[i]]
                for i in range(len(source)):
                    value = unit(source[i])
                    strength = field[i] * (value if relative else _F(1))
                    target[i] = level(fma(strength, scale, value))


@shareable()
def impulses(levels, out, keys, white, hit):
    """255 where the 16-bit rank is below white[b], else 0 where it is below hit[b], else the level; int32 bounds."""
    count = levels.shape[1]
    quarter = _quarter(count)
    words = np.empty((4, BLOCK), np.uint32)
    halves = words.view(np.uint16)
    for image in range(len(levels)):
        brightened, changed = white[image], hit[image]
        for start in range(0, quarter, BLOCK):
            size = min(BLOCK, quarter - start)
            fill(keys, image, start, size, words[0], words[1], words[2], words[3])
            for share in range(4):
                first = 2 * (share * quarter + start)
                ranks = halves[share]
                source = levels[image, first : first + 2 * size]
                target = out[image, first : first + 2 * size]
                for i in range(len(source)):
                    rank = np.int32(ranks[i])
                    kept = source[i] if rank >= changed else np.uint8(0)
                    target[i] = np.uint8(255) if rank < brightened else kept


@part
def _ranks(keys, image, count, words, out):
    """The 16-bit values of an image's stream."""
    quarter, halves = _quarter(count), words.view(np.uint16)
    for start in range(0, quarter, BLOCK):
        size = min(BLOCK, quarter - start)
        fill(keys, image, start, size, words[0], words[1], words[2], words[3])
        for share in range(4):
            first = 2 * (share * quarter + start)
            own, values = out[first : first + 2 * size], halves[share]
            for i in range(len(own)):
                own[i] = values[i]


@kernel
def salt_and_pepper(levels, out, keys, white, black):
    """Whole pixels of (B, C, pixels): 255 where the 16-bit rank is below white[b], 0 where it is black[b] or more."""
    batch, channels, count = levels.shape
    words, ranks = np.empty((4, BLOCK), np.uint32), np.empty(count, np.uint16)
    for image in range(batch):
        low, high = white[image], black[image]
        _ranks(keys, image, count, words, ranks)
        for channel in range(channels):
            source, target = levels[image, channel], out[image, channel]
            for i in range(count):
                rank = np.int32(ranks[i])
                kept = source[i] if rank < high else np.uint8(0)
                target[i] = np.uint8(255) if rank < low else kept


@kernel
def multiply_uniform(levels, out, keys, limit):
    """Whole pixels of (B, C, pixels) times 1 + limit[b] · a value uniform in (−1, 1)."""
    batch, channels, count = levels.shape
    words, ranks = np.empty((4, BLOCK), np.uint32), np.empty(count, np.uint16)
    factors = np.empty(count, np.float32)
    for image in range(batch):
        most = _F(limit[image])
        _ranks(keys, image, count, words, ranks)
        for i in range(count):
            field = (_F(ranks[i]) + _F(0.5)) * _F(2.0**-16)
            factors[i] = (field * _F(2) - _F(1)) * most + _F(1)
        for channel in range(channels):
            source, target = levels[image, channel], out[image, channel]
            for i in range(count):
                target[i] = level(unit(source[i]) * factors[i])


@shareable("table", "tails", "growth", "switch")
def poisson(levels, out, keys, table, tails, growth, kinds, photons, switch):
    """Poisson counts over photons: `blemish.ops.poisson.poisson_quantile` at the rank of a normal.

    ``tails`` holds erf(normal · √½) + 1 beside the table of normals, ``growth`` (N, 256) the exponential of each
    level's mean, for image b in row kinds[b].
    """
    count = levels.shape[1]
    quarter = _quarter(count)
    words = np.empty((4, BLOCK), np.uint32)
    halves = words.view(np.uint16)
    ranks, counts = np.empty(2 * BLOCK, np.float32), np.empty(2 * BLOCK, np.float32)
    places = np.empty(2 * BLOCK, np.int32)
    reached, means = np.empty(2 * BLOCK, np.float32), np.empty(2 * BLOCK, np.float32)
    powers, totals, few = (
        np.empty(2 * BLOCK, np.float32),
        np.empty(2 * BLOCK, np.float32),
        np.empty(2 * BLOCK, np.int32),
    )
    for image in range(len(levels)):
        light = _F(photons[image])
        dark = 0
        while dark < 256 and unit(dark) * light < _F(switch):
            dark += 1
        for start in range(0, quarter, BLOCK):
            size = min(BLOCK, quarter - start)
            fill(keys, image, start, size, words[0], words[1], words[2], words[3])
            for share in range(4):
                first = 2 * (share * quarter + start)
                index = halves[share]
                source = levels[image, first : first + 2 * size]
                target = out[image, first : first + 2 * size]
                for i in range(len(source)):
                    ranks[i] = table[index[i]]
                for i in range(len(source)):
                    mean = unit(source[i]) * light
                    mean = mean if mean > _F(switch) else _F(switch)
                    counts[i] = _expanded(ranks[i], mean)
                # The dark ones are put side by side, so that the rest of the work on them is done several at a time.
                darker = 0
                for i in range(len(source)):
                    places[darker] = i
                    darker += source[i] < dark
                for i in range(darker):
                    own = source[places[i]]
                    means[i] = unit(own) * light
                    reached[i] = tails[index[places[i]]] * growth[kinds[image], own] * _F(0.5)
                _summed(means[:darker], reached, powers, totals, few)
                for i in range(darker):
                    counts[places[i]] = _F(few[i])
                for i in range(len(source)):
                    target[i] = level(counts[i] / light)


@part
def _summed(means, reached, powers, totals, few):
    """How many partial sums of meanᵏ/k! lie below what is reached."""
    for i in range(len(means)):
        powers[i] = _F(1)
        totals[i] = _F(1)
        few[i] = 0
    factorial = 1.0
    for k in range(1, 13):
        factorial *= k
        share = _F(1 / factorial)
        more = 0
        for i in range(len(means)):
            above = np.int32(reached[i] > totals[i])
            few[i] += above
            more |= above
            powers[i] *= means[i]
            totals[i] = fma(powers[i], share, totals[i])
        if not more:
            break


@part
def _expanded(rank, mean):
    """The normal expansion of the quantile."""
    root = np.sqrt(mean)
    square = rank * rank
    even = ((square * _F(1 / 270) + _F(7 / 810)) * square - _F(8 / 405)) / mean
    odd = ((square * _F(-0.000316) - _F(0.006578)) * square + _F(0.020312)) / mean
    odd = ((fma(square, _F(-1 / 72), odd) - _F(1 / 36)) / root + root) * rank
    value = np.floor(fma(square, _F(1 / 6), even + odd) + mean + _F(1 / 3))
    return value if value > _F(0) else _F(0)
