"""Weighted sums of shifted copies, the mean of enlargements, and snow, which is made of both."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.colours import luminance
from blemish.ops.compiled.flat import add_products, clear, copy, rows_at_once, to_level_rows, widen
from blemish.ops.compiled.jit import fma, kernel, part, shareable
from blemish.ops.compiled.levels import level, unit

_F = np.float32


@part
def _merged(shifts, weights, down, right, shares):
    """The taps of an image, those that fall on one pixel as one; their number, and how far they go down and aside."""
    count, tall, wide = 0, 0, 0
    for tap in range(len(weights)):
        dy, dx = shifts[tap, 0], shifts[tap, 1]
        slot = 0
        while slot < count and (down[slot] != dy or right[slot] != dx):
            slot += 1
        if slot == count:
            down[slot], right[slot], shares[slot] = dy, dx, 0.0
            count += 1
            tall, wide = max(tall, abs(dy)), max(wide, abs(dx))
        shares[slot] += weights[tap]
    return count, tall, wide


@part
def _line_rows(padded, tall, wide, down, right, shares, count, y, places, rounded, total):
    """Sums for row y and the next ones, as many as there is room in ``total``."""
    stride = padded.shape[1]
    for tap in range(count):
        places[tap] = (y + tall + down[tap]) * stride + wide + right[tap]
        rounded[tap] = _F(shares[tap])
    clear(total)
    add_products(total, padded.reshape(padded.size), places, rounded, count)


@kernel
def line_sums(images, shifts, weights):
    """Sums over taps, edges repeated: images (B, C, H, W) float32, shifts (B, taps, 2) int64, weights (B, taps)."""
    batch, channels, height, width = images.shape
    out = np.empty_like(images)
    taps = weights.shape[1]
    down, right, shares = np.empty(taps, np.int64), np.empty(taps, np.int64), np.empty(taps, np.float64)
    places, rounded = np.empty(taps, np.int64), np.empty(taps, np.float32)
    for image in range(batch):
        count, tall, wide = _merged(shifts[image], weights[image], down, right, shares)
        stride = width + 2 * wide
        padded, rows = np.empty((height + 2 * tall, stride), np.float32), rows_at_once(stride)
        total = np.empty(rows * stride, np.float32)
        for channel in range(channels):
            for y in range(height):
                copy(images[image, channel, y], padded[tall + y, wide : wide + width])
            widen(padded, tall, wide, height, width)
            for first in range(0, height, rows):
                some = min(rows, height - first)
                sums = total[: (some - 1) * stride + width]
                _line_rows(padded, tall, wide, down, right, shares, count, first, places, rounded, sums)
                for y in range(some):
                    copy(sums[y * stride :], out[image, channel, first + y])
    return out


@shareable()
def line_levels(levels, out, shifts, weights):
    """The same from levels to levels, uint8."""
    batch, channels, height, width = levels.shape
    taps = weights.shape[1]
    down, right, shares = np.empty(taps, np.int64), np.empty(taps, np.int64), np.empty(taps, np.float64)
    places, rounded = np.empty(taps, np.int64), np.empty(taps, np.float32)
    for image in range(batch):
        count, tall, wide = _merged(shifts[image], weights[image], down, right, shares)
        stride = width + 2 * wide
        padded, rows = np.empty((height + 2 * tall, stride), np.float32), rows_at_once(stride)
        total = np.empty(rows * stride, np.float32)
        for channel in range(channels):
            for y in range(height):
                _unit_row(levels[image, channel, y], padded[tall + y, wide:])
            widen(padded, tall, wide, height, width)
            for first in range(0, height, rows):
                some = min(rows, height - first)
                sums = total[: (some - 1) * stride + width]
                _line_rows(padded, tall, wide, down, right, shares, count, first, places, rounded, sums)
                to_level_rows(sums, stride, out[image, channel, first : first + some])


@part
def _unit_row(source, row):
    for x in range(len(source)):
        row[x] = unit(source[x])


@part
def _between(above, below, down, mixed):
    """A row between two others, as torch.lerp, which starts from the nearer one."""
    if down < _F(0.5):
        for x in range(len(mixed)):
            mixed[x] = fma(down, below[x] - above[x], above[x])
    else:
        for x in range(len(mixed)):
            mixed[x] = fma(down - _F(1), below[x] - above[x], below[x])


@part
def _zoomed_row(plane, top, down, columns, shares, line, left, right, out):
    """A row of an enlargement: between rows ``top`` and the next, then between ``columns`` and the next."""
    width = plane.shape[1]
    first, stop = int(columns[0]), min(int(columns[len(columns) - 1]) + 2, width)
    above, below = plane[top, first:stop], plane[min(int(top) + 1, len(plane) - 1), first:stop]
    _between(above, below, down, line[first:stop])
    line[width] = line[width - 1]
    after = line[1:]
    for x in range(len(columns)):
        left[x] = line[columns[x]]
        right[x] = after[columns[x]]
    for x in range(len(columns)):
        apart, near = right[x] - left[x], shares[x] < _F(0.5)
        out[x] = fma(shares[x] if near else shares[x] - _F(1), apart, left[x] if near else right[x])


@part
def _zoomed_sum(plane, y, rows, downs, columns, rights, line, left, right, zoomed, total):
    """Row y of the mean of a plane and its enlargements."""
    here = plane[y]
    for x in range(len(total)):
        total[x] = here[x]
    for factor in range(len(rows)):
        axis = (columns[factor], rights[factor], line, left, right, zoomed)
        _zoomed_row(plane, rows[factor, y], downs[factor, y], *axis)
        for x in range(len(total)):
            total[x] += zoomed[x]
    count = _F(len(rows) + 1)
    for x in range(len(total)):
        total[x] /= count


@kernel
def zoom_mean(images, rows, downs, columns, rights):
    """The mean of images (B, C, H, W) float32 and enlargements, given by the first of two rows and the second's share.

    ``rows`` are (F, H) and ``columns`` (F, W), uint32 places, with float32 shares.
    """
    batch, channels, height, width = images.shape
    out = np.empty_like(images)
    line, left, right = np.empty(width + 1, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    zoomed = np.empty(width, np.float32)
    for image in range(batch):
        for channel in range(channels):
            for y in range(height):
                tables = (rows, downs, columns, rights, line, left, right, zoomed)
                _zoomed_sum(images[image, channel], y, *tables, out[image, channel, y])
    return out


@part
def _add_pixels(line, before, nearer, weights, total):
    """Add a row of pixels between those of ``line``: weight · (next − one before) + the nearer of the two."""
    for x in range(len(before)):
        a, b, weight, here = before[x], nearer[x], weights[x], 3 * x
        red, green, blue = line[a], line[a + 1], line[a + 2]
        total[here] += fma(weight, line[a + 3] - red, line[b])
        total[here + 1] += fma(weight, line[a + 4] - green, line[b + 1])
        total[here + 2] += fma(weight, line[a + 5] - blue, line[b + 2])


@part
def _zoom_colours(levels, out, rows, downs, columns, rights):
    """Colour images. Their channels lie side by side meanwhile, so that a column's place is looked up once for all."""
    batch, _, height, width = levels.shape
    pixels, total = np.empty((height, 3 * width), np.float32), np.empty(3 * width, np.float32)
    line = np.empty(3 * width + 3, np.float32)
    before, nearer = np.empty(columns.shape, np.uint32), np.empty(columns.shape, np.uint32)
    weights = np.empty(columns.shape, np.float32)
    for factor in range(len(columns)):
        for x in range(width):
            share, first = rights[factor, x], 3 * columns[factor, x]
            near = share < _F(0.5)
            before[factor, x], nearer[factor, x] = first, first if near else first + 3
            weights[factor, x] = share if near else share - _F(1)
    count = _F(len(rows) + 1)
    for image in range(batch):
        for channel in range(3):
            for y in range(height):
                source, row = levels[image, channel, y], pixels[y]
                for x in range(width):
                    row[3 * x + channel] = unit(source[x])
        for y in range(height):
            copy(pixels[y], total)
            for factor in range(len(rows)):
                top = int(rows[factor, y])
                first, stop = 3 * int(columns[factor, 0]), 3 * min(int(columns[factor, width - 1]) + 2, width)
                above, below = pixels[top, first:stop], pixels[min(top + 1, height - 1), first:stop]
                _between(above, below, downs[factor, y], line[first:stop])
                for channel in range(3):
                    line[3 * width + channel] = line[3 * width - 3 + channel]
                _add_pixels(line, before[factor], nearer[factor], weights[factor], total)
            for x in range(3 * width):
                total[x] /= count
            for channel in range(3):
                target = out[image, channel, y]
                for x in range(width):
                    target[x] = level(total[3 * x + channel])


@shareable("rows", "downs", "columns", "rights")
def zoom_levels(levels, out, rows, downs, columns, rights):
    """The same from levels to levels, uint8."""
    batch, channels, height, width = levels.shape
    if channels == 3:
        _zoom_colours(levels, out, rows, downs, columns, rights)
        return
    plane, total = np.empty((height, width), np.float32), np.empty(width, np.float32)
    line, left, right = np.empty(width + 1, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    zoomed = np.empty(width, np.float32)
    for image in range(batch):
        for channel in range(channels):
            for y in range(height):
                _unit_row(levels[image, channel, y], plane[y])
            for y in range(height):
                _zoomed_sum(plane, y, rows, downs, columns, rights, line, left, right, zoomed, total)
                to_level_rows(total, width, out[image, channel, y : y + 1])


@kernel
def snow(levels, out, field, mean, std, threshold, weight, rows, downs, columns, rights, shifts, weights):
    """Enlarged specks of a field (B, H, W) above a threshold, smeared along a line, over a whitened scene.

    One enlargement, as in `zoom_mean`; shifts and weights as in `line_sums`.
    """
    batch, _, height, width = levels.shape
    taps = weights.shape[1]
    down, right, shares = np.empty(taps, np.int64), np.empty(taps, np.int64), np.empty(taps, np.float64)
    places, rounded = np.empty(taps, np.int64), np.empty(taps, np.float32)
    line, ahead, behind = np.empty(width + 1, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    layer, zoomed = np.empty((height, width), np.float32), np.empty(width, np.float32)
    for image in range(batch):
        _specks(field[image], _F(std[image]), _F(mean[image]), rows[0], columns[0])
        count, tall, wide = _merged(shifts[image], weights[image], down, right, shares)
        stride = width + 2 * wide
        padded, many = np.empty((height + 2 * tall, stride), np.float32), rows_at_once(stride)
        total = np.empty(many * stride, np.float32)
        least = _F(threshold[image])
        for y in range(height):
            _zoomed_row(field[image], rows[0, y], downs[0, y], columns[0], rights[0], line, ahead, behind, zoomed)
            row = padded[tall + y, wide:]
            for x in range(width):
                row[x] = unit(level(zoomed[x] if zoomed[x] >= least else _F(0)))
        widen(padded, tall, wide, height, width)
        for first in range(0, height, many):
            some = min(many, height - first)
            sums = total[: (some - 1) * stride + width]
            _line_rows(padded, tall, wide, down, right, shares, count, first, places, rounded, sums)
            for y in range(some):
                row, smeared = layer[first + y], sums[y * stride :][:width]
                for x in range(width):
                    row[x] = unit(level(smeared[x]))
        _cover(levels[image], out[image], layer, _F(weight[image]), zoomed)


@part
def _specks(field, std, mean, rows, columns):
    """Scale and shift what the enlargement reads of a field."""
    first, last = int(columns[0]), min(int(columns[len(columns) - 1]) + 2, field.shape[1])
    for y in range(int(rows[0]), min(int(rows[len(rows) - 1]) + 2, len(field))):
        row = field[y, first:last]
        for x in range(len(row)):
            row[x] = row[x] * std + mean


@part
def _cover(levels, out, layer, weight, both):
    channels, height, width = levels.shape
    rest = _F(1) - weight
    for y in range(height):
        here, there = layer[y], layer[height - 1 - y]
        for x in range(width):
            both[x] = here[x] + there[width - 1 - x]
        if channels == 1:
            gray, target = levels[0, y], out[0, y]
            for x in range(width):
                value = unit(gray[x])
                whitened = max(value, value * _F(1.5) + _F(0.5))
                target[x] = level(fma(whitened, rest, value * weight) + both[x])
            continue
        red, green, blue = levels[0, y], levels[1, y], levels[2, y]
        red_out, green_out, blue_out = out[0, y], out[1, y], out[2, y]
        for x in range(width):
            a, b, c = unit(red[x]), unit(green[x]), unit(blue[x])
            light = luminance(a, b, c) * _F(1.5) + _F(0.5)
            red_out[x] = level(fma(max(a, light), rest, a * weight) + both[x])
            green_out[x] = level(fma(max(b, light), rest, b * weight) + both[x])
            blue_out[x] = level(fma(max(c, light), rest, c * weight) + both[x])
