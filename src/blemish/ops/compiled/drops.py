"""The light on drops of water, as `blemish.ops.edges.drop_light` makes it: whole numbers throughout.

Planes have margins, so that no place needs a test of its own; rows are worked on several places at a time.
"""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.flat import copy
from blemish.ops.compiled.jit import kernel, part
from blemish.ops.compiled.outlines import find_edges, gradients, load, short

_F = np.float32

# Chamfer weights in 1/320 pixel, and where distances are cut, as in `blemish.ops.edges`.
_UNIT, _DIAGONAL, _KNIGHT = np.int16(320), np.int16(448), np.int16(703)
_MOST = np.int16(20 * 320)
_AROUND = 8  # the margin of a row in which distances spread: the longest jump
_BLOCK = 9 * 320

# Depths are at most 20. Each count is kept four times, because adding to the one just added to would have to wait.
_BINS, _COUNTERS = 32, 4

# Added to a float32 below 2²² and taken away again, it leaves the nearest whole number, the even one of two.
_ROUND = np.float32(12582912)


@part
def drop_room(height, width):
    """Memory that `light_on_drops` works in, for one image after another of that size."""
    return (
        np.empty((height + 2, width + 2), np.int16),
        np.zeros((height + 2, width + 2), np.int16),
        np.empty((height, width), np.int16),
        np.zeros((height + 2, width + 2), np.int16),
        np.empty(height * width + 1, np.int32),
        np.full((height + 4, width + 4), _MOST, np.int16),
        np.full((2, width + 2 * _AROUND), _MOST, np.int16),
        np.empty((height, width), np.uint8),
        np.empty((2, width + 2), np.int32),
    )


@part
def light_on_drops(levels, low, high, room, light):
    """Brightness (H, W) float32 of whole numbers, from levels (H, W) int16, with Canny's thresholds."""
    plane, norms, ways, edges, waiting, distances, spread, depths, sums = room
    load(levels, plane)
    gradients(plane, norms, ways)
    find_edges(norms, ways, np.int16(low), np.int16(high), edges, waiting)
    _measure(edges, distances, spread)
    table = _depths(distances, sums, depths)
    _equalise(depths, table, plane)
    _lit(plane, norms)
    _smoothed(norms, sums, light)
    _frame(norms, 0, np.int16(0))  # as the next image expects it


@part
def _less(first, second):
    return first if first < second else second


@part
def _further(value, cost):
    return short(value + cost)


@part
def _from_rows(near, far, row):
    """Lower a row to what steps from the rows next to it, and next to that, reach."""
    size = len(row)
    a, b, c = near[1:][:size], near[2:][:size], near[3:][:size]
    for x in range(size):
        straight, diagonal = _further(b[x], _UNIT), _further(_less(a[x], c[x]), _DIAGONAL)
        row[x] = _less(row[x], _less(straight, diagonal))
    d, e, f, g = near[:size], near[4:][:size], far[1:][:size], far[3:][:size]
    for x in range(size):
        knight = _further(_less(_less(d[x], e[x]), _less(f[x], g[x])), _KNIGHT)
        row[x] = _less(row[x], knight)


@part
def _along(row, other, before):
    """Lower a row to what straight steps from one side reach, into the other one; jumps add up to 20 and more."""
    size = len(row) - 2 * _AROUND
    for number in range(5):
        jump = min(1 << number, _AROUND)
        cost = np.int16(jump * 320)
        source, target = (row, other) if number % 2 == 0 else (other, row)
        here, there = source[_AROUND:][:size], source[_AROUND - jump if before else _AROUND + jump :][:size]
        result = target[_AROUND:][:size]
        for x in range(size):
            result[x] = _less(here[x], _further(there[x], cost))


@part
def _measure(edges, distances, spread):
    """The chamfer distance to the nearest edge pixel, cut: steps from above and the left, then the others.

    A shortest chain has steps of two kinds in neighbouring directions. Where one kind belongs to the first pass and the
    other to the second, in that order they stay inside.
    """
    height, width = edges.shape[0] - 2, edges.shape[1] - 2
    first, second = spread[0], spread[1]
    now, made = first[_AROUND:][:width], second[_AROUND:][:width]
    for y in range(height):
        marks = edges[y + 1, 1:][:width]
        for x in range(width):
            now[x] = short(0) if marks[x] == 2 else _MOST
        _from_rows(distances[y + 1], distances[y], now)
        _along(first, second, True)
        copy(made, distances[y + 2, 2:][:width])
    for back in range(height):
        y = height - 1 - back
        own = distances[y + 2, 2:][:width]
        copy(own, now)
        _from_rows(distances[y + 3], distances[y + 4], now)
        _along(first, second, False)
        copy(made, own)


@part
def _mirrored(plane, top, height, width):
    """Mirror a plane that begins at (top, top), without its edge, into the margin next to it."""
    for y in range(top, top + height):
        row = plane[y]
        row[top - 1], row[top + width] = row[top + 1], row[top + width - 2]
    copy(plane[top + 1], plane[top - 1])
    copy(plane[top + height - 2], plane[top + height])


@part
def _block_row(upper, middle, lower, columns, sums):
    """Sums of 3 × 3 blocks of one row; ``columns`` are those of three rows."""
    for x in range(len(columns)):
        columns[x] = np.int32(upper[x] + middle[x] + lower[x])
    left, here, right = columns[: len(sums)], columns[1:][: len(sums)], columns[2:][: len(sums)]
    for x in range(len(sums)):
        sums[x] = np.int32(left[x] + here[x] + right[x])


@part
def _depths(distances, sums, depths):
    """The mean distance of each 3 × 3 block in whole pixels, and what each depth becomes where they are equalised."""
    height, width = depths.shape
    _mirrored(distances, 2, height, width)
    counts = np.zeros((_COUNTERS, _BINS), np.int32)
    columns, totals = sums[0], sums[1, :width]
    for y in range(height):
        above, here, below = distances[y + 1, 1:], distances[y + 2, 1:], distances[y + 3, 1:]
        _block_row(above, here, below, columns, totals)
        own = depths[y]
        for x in range(width):
            own[x] = np.uint8(np.int32((_F(totals[x]) + _F(0.5)) * _F(1 / _BLOCK)))
        for x in range(width):
            counts[x % _COUNTERS, own[x]] += 1
    _frame(distances, 1, _MOST)  # as the next image expects it
    return _spread_evenly(counts, height * width)


@part
def _spread_evenly(counts, size):
    """The levels that equalising gives to each depth; depths of one value stay."""
    table, total, darkest = np.empty(_BINS, np.int32), 0, size
    for depth in range(_BINS):
        for counter in range(_COUNTERS):
            total += counts[counter, depth]
        darkest = min(darkest, total if total > 0 else size)
        table[depth] = total
    if darkest == size:
        for depth in range(_BINS):
            table[depth] = depth
        return table
    scale = _F(255) / _F(size - darkest)
    for depth in range(_BINS):
        table[depth] = np.int32((_F(table[depth]) - _F(darkest)) * scale + _ROUND - _ROUND)
    return table


@part
def _frame(plane, margin, value):
    """Set the places so far inside of a plane's border."""
    height, width = plane.shape
    first, last = plane[margin], plane[height - 1 - margin]
    for x in range(width):
        first[x], last[x] = value, value
    for y in range(height):
        plane[y, margin], plane[y, width - 1 - margin] = value, value


@part
def _equalise(depths, table, plane):
    height, width = depths.shape
    for y in range(height):
        source, target = depths[y], plane[y + 1, 1:][:width]
        for x in range(width):
            target[x] = short(table[source[x]])
    _mirrored(plane, 1, height, width)


@part
def _lit(plane, lit):
    """Levels under the kernel [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], clipped to 0 … 255."""
    height, width = plane.shape[0] - 2, plane.shape[1] - 2
    for y in range(height):
        above, here, below = plane[y], plane[y + 1], plane[y + 2]
        a, b, c, d = above[:width], above[1:][:width], here[:width], here[1:][:width]
        e, f, g = here[2:][:width], below[1:][:width], below[2:][:width]
        target = lit[y + 1, 1:][:width]
        for x in range(width):
            slope = short(2 * (g[x] - a[x]) + d[x] + e[x] + f[x] - b[x] - c[x])
            slope = slope if slope > 0 else short(0)
            target[x] = slope if slope < 255 else short(255)
    _mirrored(lit, 1, height, width)


@part
def _smoothed(lit, sums, light):
    """The rounded mean of each 3 × 3 block."""
    height, width = light.shape
    columns, totals = sums[0], sums[1, :width]
    for y in range(height):
        _block_row(lit[y], lit[y + 1], lit[y + 2], columns, totals)
        own = light[y]
        for x in range(width):
            own[x] = _F(totals[x]) * _F(1 / 9) + _ROUND - _ROUND


@kernel
def drop_light(levels, low, high, light):
    """Brightness (B, 1, H, W) float32 of levels (B, 1, H, W) int16; both sides are longer than one pixel."""
    room = drop_room(levels.shape[2], levels.shape[3])
    for image in range(len(levels)):
        light_on_drops(levels[image, 0], low, high, room, light[image, 0])
