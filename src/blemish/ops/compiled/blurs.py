"""Gaussian blurs by sums over neighbours, glass blur, and blurs with a kernel of few different weights.

Borders: 0 repeats the edge, 1 mirrors the image with its edge, 2 without it. Radii are smaller than the sides.
"""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.flat import clear, copy, rows_at_once, to_level_rows, widen
from blemish.ops.compiled.jit import fma, kernel, part, shareable
from blemish.ops.compiled.levels import unit
from blemish.ops.compiled.words import BLOCK, fill

_F = np.float32


@part
def _inside(index, size, border):
    if border == 0:
        return min(max(index, 0), size - 1)
    edge = 1 if border == 1 else 0
    index = -edge - index if index < 0 else index
    return 2 * size - 2 + edge - index if index >= size else index


@part
def _add_pairs(total, flat, middle, step, weights, radius):
    """weights[0] · middle, and weights[i] times the sum of the two that lie i steps away, for each i in turn."""
    size, first, number = len(total), weights[0], 1
    centre = flat[middle:][:size]
    for i in range(size):
        total[i] = centre[i] * first
    # Three pairs at a time, so that sums are written and read again less often.
    while number + 2 <= radius:
        near, far = number * step, (number + 2) * step
        a, b = flat[middle - near :][:size], flat[middle + near :][:size]
        c, d = flat[middle - near - step :][:size], flat[middle + near + step :][:size]
        e, f = flat[middle - far :][:size], flat[middle + far :][:size]
        p, q, r = weights[number], weights[number + 1], weights[number + 2]
        for i in range(size):
            total[i] = fma(e[i] + f[i], r, fma(c[i] + d[i], q, fma(a[i] + b[i], p, total[i])))
        number += 3
    while number <= radius:
        a, b = flat[middle - number * step :][:size], flat[middle + number * step :][:size]
        p = weights[number]
        for i in range(size):
            total[i] = fma(a[i] + b[i], p, total[i])
        number += 1


@part
def _mirror(padded, radius, height, width, border):
    """Put the margins of a padded plane right. Columns first: their margins are filtered like the rest."""
    for y in range(radius, radius + height):
        row = padded[y]
        for x in range(radius):
            row[x] = row[radius + _inside(x - radius, width, border)]
            row[radius + width + x] = row[radius + _inside(width + x, width, border)]
    for y in range(radius):
        copy(padded[radius + _inside(y - radius, height, border)], padded[y])
        copy(padded[radius + _inside(height + y, height, border)], padded[radius + height + y])


@part
def _rows(padded, radius, weights, first, some, width, down, total):
    """Rows ``first`` and the next of a padded plane, filtered along columns and then along rows."""
    stride = padded.shape[1]
    # The margins of the first and last row are needed too.
    tall = down[: some * stride]
    _add_pairs(tall, padded.reshape(padded.size), (first + radius) * stride, stride, weights, radius)
    across = total[: (some - 1) * stride + width]
    _add_pairs(across, tall, radius, 1, weights, radius)
    return across


@part
def filtered(planes, weights, radius, border, out):
    """Planes (C, H, W) float32, filtered along columns, then rows."""
    channels, height, width = planes.shape
    stride = width + 2 * radius
    padded, many = np.empty((height + 2 * radius, stride), np.float32), rows_at_once(stride)
    down, total = np.empty(many * stride, np.float32), np.empty(many * stride, np.float32)
    for channel in range(channels):
        for y in range(height):
            copy(planes[channel, y], padded[radius + y, radius : radius + width])
        _mirror(padded, radius, height, width, border)
        for first in range(0, height, many):
            some = min(many, height - first)
            sums = _rows(padded, radius, weights, first, some, width, down, total)
            for y in range(some):
                copy(sums[y * stride :], out[channel, first + y])


@kernel
def gaussian(images, weights, radii, border):
    """Filter columns, then rows, of (B, C, H, W) float32: weights (B, room) float32 from the centre on, radii (B,)."""
    out = np.empty_like(images)
    for image in range(len(images)):
        filtered(images[image], weights[image], radii[image], border, out[image])
    return out


@part
def _blur_levels(source, target, own, radius):
    """Planes (C, H, W) of levels, edges repeated, to levels."""
    channels, height, width = source.shape
    stride = width + 2 * radius
    padded, many = np.empty((height + 2 * radius, stride), np.float32), rows_at_once(stride)
    down, total = np.empty(many * stride, np.float32), np.empty(many * stride, np.float32)
    for channel in range(channels):
        for y in range(height):
            row, levels = padded[radius + y, radius:], source[channel, y]
            for x in range(width):
                row[x] = unit(levels[x])
        widen(padded, radius, radius, height, width)
        for first in range(0, height, many):
            some = min(many, height - first)
            sums = _rows(padded, radius, own, first, some, width, down, total)
            to_level_rows(sums, stride, target[channel, first : first + some])


@shareable()
def gaussian_levels(levels, out, weights, radii):
    """The same from levels to levels, uint8, with edges repeated."""
    for image in range(len(levels)):
        _blur_levels(levels[image], out[image], weights[image], radii[image])


@part
def _blur_faintly(source, target, own, radius, plane, total):
    """A plane of levels to levels in double precision: a faint blur moves a level by a millionth before truncation."""
    height, width = source.shape
    for y in range(height):
        for x in range(width):
            value = own[0] * source[y, x]
            for step in range(1, radius + 1):
                before, after = source[max(y - step, 0), x], source[min(y + step, height - 1), x]
                value += own[step] * (float(before) + float(after))
            plane[y, x] = value
    for y in range(height):
        for x in range(width):
            value = own[0] * plane[y, x]
            for step in range(1, radius + 1):
                value += own[step] * (plane[y, max(x - step, 0)] + plane[y, min(x + step, width - 1)])
            total[x] = value
        for x in range(width):
            target[y, x] = np.uint8(np.floor(total[x] + 1e-9))


@part
def _shuffle(pixels, keys, image, reach, height, width, moves):
    """One pass of copying each pixel from a random neighbour, from the end, in place; moves are made first."""
    count, side = height * width, 2 * reach
    quarter = ((count + 1) // 2 + 3) // 4
    words = np.empty((4, BLOCK), np.uint32)
    halves = words.view(np.uint16)
    places = np.uint32(side * side)
    steps = np.empty(side * side, np.int32)
    for cell in range(side * side):
        steps[cell] = (cell // side - reach) * width + cell % side - reach
    for start in range(0, quarter, BLOCK):
        size = min(BLOCK, quarter - start)
        fill(keys, image, start, size, words[0], words[1], words[2], words[3])
        for quarter_number in range(4):
            first = 2 * (quarter_number * quarter + start)
            own, ranks = moves[first : first + 2 * size], halves[quarter_number]
            for i in range(len(own)):
                own[i] = steps[np.uint32(np.uint32(ranks[i] * np.uint32(2) + np.uint32(1)) * places) >> np.uint32(17)]
    for y in range(height - reach, reach, -1):
        for x in range(width - reach, reach, -1):
            here = y * width + x
            pixels[here] = pixels[here + moves[here]]


@shareable()
def glass(levels, out, weights, exact, radii, faint, keys, reaches, passes):
    """Blur, truncate, move pixels about, blur again. Weights as in `gaussian`, ``exact`` the same in double precision.

    ``keys`` (passes, 4, B) are those of each pass's stream; a pass moves pixels by less than reaches[b] or as much.
    """
    batch, channels, height, width = levels.shape
    fine, fine_total = np.empty((height, width), np.float64), np.empty(width, np.float64)
    pixels, moves = np.empty(height * width, np.uint32), np.empty(height * width, np.int32)
    blurred = np.empty((channels, height, width), np.uint8)
    for image in range(batch):
        radius = radii[image]
        if faint[image]:
            for channel in range(channels):
                _blur_faintly(levels[image, channel], blurred[channel], exact[image], radius, fine, fine_total)
        else:
            _blur_levels(levels[image], blurred, weights[image], radius)
        flat = blurred.reshape(channels, height * width)
        for i in range(height * width):
            pixels[i] = flat[0, i]
        if channels == 3:
            green, blue = flat[1], flat[2]
            for i in range(height * width):
                pixels[i] |= np.uint32(green[i]) << np.uint32(8) | np.uint32(blue[i]) << np.uint32(16)
        for number in range(passes[image]):
            _shuffle(pixels, keys[number], image, reaches[image], height, width, moves)
        for channel in range(channels):
            shift, own = np.uint32(8 * channel), flat[channel]
            for i in range(height * width):
                own[i] = np.uint8((pixels[i] >> shift) & np.uint32(255))
        _blur_levels(blurred, out[image], weights[image], radius)


@part
def _with_margins(source, columns, row):
    """A row between margins, whose places in it are ``columns``."""
    width, reach = len(source), (len(columns) - len(source)) // 2
    middle = row[reach:]
    for x in range(width):
        middle[x] = source[x]
    for x in range(reach):
        row[x] = source[columns[x]]
        row[reach + width + x] = source[columns[reach + width + x]]


@part
def _sum(first, second):
    """In 16 bits, where numba would take 64."""
    return np.uint16(first + second)


@part
def _count(total, flat, places, first, stop):
    """Sums of slices of levels."""
    size, tap = len(total), first + 1
    copy(flat[places[first] :], total)
    while tap + 4 <= stop:
        a, b = flat[places[tap] :][:size], flat[places[tap + 1] :][:size]
        c, d = flat[places[tap + 2] :][:size], flat[places[tap + 3] :][:size]
        for i in range(size):
            total[i] = _sum(total[i], _sum(_sum(a[i], b[i]), _sum(c[i], d[i])))
        tap += 4
    while tap < stop:
        a = flat[places[tap] :][:size]
        for i in range(size):
            total[i] = _sum(total[i], a[i])
        tap += 1


@part
def _add_class(sums, counts, flat, places, first, stop, share):
    """Add share · (sum of slices of levels)."""
    _count(counts, flat, places, first, stop)
    for i in range(len(sums)):
        sums[i] = fma(_F(counts[i]), share, sums[i])


@shareable("rows", "columns", "pairs", "taps", "starts", "weights")
def weighted_classes(levels, out, rows, columns, pairs, taps, starts, weights):
    """Σ weight · Σ levels over the taps of each class of equal weight, which is a whole number; uint8 to uint8.

    ``rows`` and ``columns`` say what stands at each place of an image with margins. ``pairs`` are rows of the kernel
    that are added first, because they have the same taps; a single row stands beside −1. Taps are (number of the pair,
    column), class by class: those of class i are numbers starts[i] … starts[i + 1] − 1.
    """
    batch, channels, height, width = levels.shape
    stride = len(columns)
    padded, many = np.empty((len(rows), stride), np.uint16), rows_at_once(stride)
    sources = np.empty((len(pairs), many * stride), np.uint16)
    count, total = np.empty(many * stride, np.uint16), np.empty(many * stride, np.float32)
    places = np.empty(len(taps), np.int64)
    for tap in range(len(taps)):
        places[tap] = taps[tap, 0] * many * stride + taps[tap, 1]
    flat, both = padded.reshape(padded.size), sources.reshape(sources.size)
    for image in range(batch):
        for channel in range(channels):
            for y in range(len(rows)):
                source, row = levels[image, channel, rows[y]], padded[y]
                _with_margins(source, columns, row)
            for first in range(0, height, many):
                some = min(many, height - first)
                for number in range(len(pairs)):
                    upper = flat[(first + pairs[number, 0]) * stride :][: some * stride]
                    lower = flat[(first + max(pairs[number, 1], 0)) * stride :][: some * stride]
                    own = sources[number]
                    if pairs[number, 1] < 0:
                        copy(upper, own[: len(upper)])
                    else:
                        for i in range(len(upper)):
                            own[i] = _sum(upper[i], lower[i])
                size = (some - 1) * stride + width
                sums, counts = total[:size], count[:size]
                clear(sums)
                for number in range(len(weights)):
                    _add_class(sums, counts, both, places, starts[number], starts[number + 1], weights[number])
                for i in range(size):
                    sums[i] *= _F(1 / 255)
                to_level_rows(sums, stride, out[image, channel, first : first + some])
