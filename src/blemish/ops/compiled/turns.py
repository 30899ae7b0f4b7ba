"""The weighted mean of turned images, sampled by cubic splines: one sum over neighbours for all turns together.

What is turned one way is the mirror image of what is turned the other way. So neighbours are worked out for the upper
left quarter, and every image lies in memory beside its three mirror images.
"""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import fma, kernel, part

_F = np.float32


@part
def _spline_weights(t, out):
    z = 1 - t
    out[0] = z * z * z / 6
    out[1] = (t * t * (t - 2) * 3 + 4) / 6
    out[2] = (z * z * (z - 2) * 3 + 4) / 6
    out[3] = 1 - out[0] - out[1] - out[2]


@kernel
def neighbours(height, width, start, turns, across, starts, places, weights):
    """For pixels from number ``start`` on, the runs of four neighbours and their weights; see `blemish.ops.turns`.

    ``turns`` (turns, 3) are cosines, sines and shares. Returns how many runs there are.
    """
    middle_row, middle_column = (height - 1) / 2, (width - 1) / 2
    columns = (width + 1) // 2
    tall, wide = height + 3, width + 6
    sums, low, high = np.zeros((tall, wide)), np.empty(tall, np.int64), np.empty(tall, np.int64)
    down_weights, right_weights = np.empty(4), np.empty(4)
    count = 0
    starts[0] = 0
    for pixel in range(len(starts) - 1):
        down, right = (start + pixel) // columns - middle_row, (start + pixel) % columns - middle_column
        first, last = tall, 0
        for turn in range(len(turns)):
            cos, sin = turns[turn, 0], turns[turn, 1]
            row = cos * down + sin * right + middle_row
            column = -sin * down + cos * right + middle_column
            if row < 0 or row > height - 1 or column < 0 or column > width - 1:
                continue
            y, x = int(row), int(column)
            _spline_weights(row - y, down_weights)
            _spline_weights(column - x, right_weights)
            while first > y or last < y + 4:
                # A row that is new to this pixel.
                new = y if first == tall else (first - 1 if first > y else last)
                first, last = min(first, new), max(last, new + 1)
                low[new], high[new] = wide, 0
            for i in range(4):
                line = sums[y + i]
                low[y + i], high[y + i] = min(low[y + i], x), max(high[y + i], x + 4)
                share = down_weights[i] * turns[turn, 2]
                for j in range(4):
                    line[x + j] += right_weights[j] * share
        for y in range(first, last):
            line = sums[y]
            for x in range(low[y], high[y], 4):
                a, b, c, d = _F(line[x]), _F(line[x + 1]), _F(line[x + 2]), _F(line[x + 3])
                line[x], line[x + 1], line[x + 2], line[x + 3] = 0.0, 0.0, 0.0, 0.0
                if a != 0 or b != 0 or c != 0 or d != 0:
                    places[count] = y * across + x
                    weights[count, 0], weights[count, 1], weights[count, 2], weights[count, 3] = a, b, c, d
                    count += 1
        starts[pixel + 1] = count
    return count


@part
def _filtered(values, start):
    """From values times 6, along the first axis (n, m), to the coefficients of splines; see `blemish.ops.splines`."""
    places, powers, end = start
    count, size = values.shape
    if count == 1:
        for x in range(size):
            values[0, x] = values[0, x] / 6
    else:
        first, pole = np.zeros(size), powers[1]
        for n in range(len(powers)):
            own, power = values[places[n]], powers[n]
            for x in range(size):
                first[x] = first[x] + own[x] * power
        values[0] = first
        for y in range(1, count):
            before, own = values[y - 1], values[y]
            for x in range(size):
                own[x] = own[x] + before[x] * pole
        before, own = values[count - 2], values[count - 1]
        for x in range(size):
            own[x] = (own[x] + before[x] * pole) * end
        for y in range(count - 2, -1, -1):
            after, own = values[y + 1], values[y]
            for x in range(size):
                own[x] = (after[x] - own[x]) * pole


@kernel
def coefficients(levels, rows, columns, row_start, column_start, grid):
    """Coefficients of splines through levels (planes, H, W), at these rows and columns, in ``grid`` (h, w, lanes).

    A plane is followed by its mirror images: left to right, top to bottom, and both.
    """
    planes, height, width = levels.shape
    values, line = np.empty((height, width * planes)), np.empty((width, planes))
    gain = 36 / 255
    for y in range(height):
        for plane in range(planes):
            for x in range(width):
                line[x, plane] = levels[plane, y, x] * gain
        _filtered(line, column_start)
        values[y] = line.reshape(width * planes)
    _filtered(values, row_start)
    whole = values.reshape(height, width, planes)
    for y in range(len(rows)):
        upper, lower = whole[rows[y]], whole[height - 1 - rows[y]]
        for x in range(len(columns)):
            left, right, target = columns[x], width - 1 - columns[x], grid[y, x]
            for plane in range(planes):
                target[plane] = _F(upper[left, plane])
                target[planes + plane] = _F(upper[right, plane])
                target[2 * planes + plane] = _F(lower[left, plane])
                target[3 * planes + plane] = _F(lower[right, plane])


@part
def _add(flat, start, lanes, a, b, c, d, total):
    """Add the weighted sum of a run of four neighbours, of all lanes.

    Numbers without a sign, because places that might be negative keep the loop from being vectorised.
    """
    second, third, fourth = start + lanes, start + lanes + lanes, start + lanes + lanes + lanes
    for i in range(lanes):
        value = fma(flat[third + i], c, fma(flat[second + i], b, flat[start + i] * a))
        total[i] += fma(flat[fourth + i], d, value)


@part
def _byte(value):
    value = value * _F(255)
    value = value if value > 0 else _F(0)
    return np.uint8(np.int32(value if value < 255 else _F(255)))


@kernel
def turned_mean(grid, start, starts, places, weights, out):
    """The mean of turned images (planes, H, W) uint8, from pixel number ``start`` on and where those are mirrored."""
    planes, height, width = out.shape
    lanes = np.uint64(grid.shape[2])
    flat, total = grid.reshape(grid.size), np.empty(grid.shape[2], np.float32)
    columns = (width + 1) // 2
    for pixel in range(len(starts) - 1):
        total[:] = 0
        for n in range(starts[pixel], starts[pixel + 1]):
            own = weights[n]
            _add(flat, np.uint64(places[n]) * lanes, lanes, own[0], own[1], own[2], own[3], total)
        y, x = (start + pixel) // columns, (start + pixel) % columns
        below, beside = height - 1 - y, width - 1 - x
        for plane in range(planes):
            # From the last to the first: a row or column in the middle is its own mirror image.
            image = out[plane]
            image[below, beside] = _byte(total[3 * planes + plane])
            image[below, x] = _byte(total[2 * planes + plane])
            image[y, beside] = _byte(total[planes + plane])
            image[y, x] = _byte(total[plane])
