"""The JPEG round trip of `blemish.ops.jpeg` in whole numbers, without the coding, which loses nothing.

A group of 8×8 blocks lies in an array (64, blocks), so that the transform does the same to many blocks at a time.
"""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import part, shareable

_I = np.int32
_GROUP = 32


@part
def _forward(t, first, step, rounding, shift):
    """Eight lines of eight coefficients in place, ``step`` rows apart, rounded and shifted."""
    r = _I(rounding)
    a0, a1, a2, a3 = t[first], t[first + step], t[first + 2 * step], t[first + 3 * step]
    a4, a5, a6, a7 = t[first + 4 * step], t[first + 5 * step], t[first + 6 * step], t[first + 7 * step]
    for b in range(_GROUP):
        s0, s1, s2, s3 = _I(a0[b] + a7[b]), _I(a1[b] + a6[b]), _I(a2[b] + a5[b]), _I(a3[b] + a4[b])
        d0, d1, d2, d3 = _I(a0[b] - a7[b]), _I(a1[b] - a6[b]), _I(a2[b] - a5[b]), _I(a3[b] - a4[b])
        outer, inner = _I(s0 - s3), _I(s1 - s2)
        a0[b] = _I(_I(s0 + s1 + s2 + s3) * _I(8192) + r) >> shift
        a1[b] = _I(d0 * _I(11363) + d1 * _I(9633) + d2 * _I(6437) + d3 * _I(2260) + r) >> shift
        a2[b] = _I(outer * _I(10703) + inner * _I(4433) + r) >> shift
        a3[b] = _I(d0 * _I(9633) - d1 * _I(2259) - d2 * _I(11362) - d3 * _I(6436) + r) >> shift
        a4[b] = _I(_I(s0 - s1 - s2 + s3) * _I(8192) + r) >> shift
        a5[b] = _I(d0 * _I(6437) - d1 * _I(11362) + d2 * _I(2261) + d3 * _I(9633) + r) >> shift
        a6[b] = _I(outer * _I(4433) - inner * _I(10704) + r) >> shift
        a7[b] = _I(d0 * _I(2260) - d1 * _I(6436) + d2 * _I(9633) - d3 * _I(11363) + r) >> shift


@part
def _inverse(t, first, step, rounding, shift):
    """The way back."""
    r = _I(rounding)
    a0, a1, a2, a3 = t[first], t[first + step], t[first + 2 * step], t[first + 3 * step]
    a4, a5, a6, a7 = t[first + 4 * step], t[first + 5 * step], t[first + 6 * step], t[first + 7 * step]
    for b in range(_GROUP):
        c0, c1, c2, c3, c4, c5, c6, c7 = a0[b], a1[b], a2[b], a3[b], a4[b], a5[b], a6[b], a7[b]
        plus, minus = _I(_I(c0 + c4) * _I(8192) + r), _I(_I(c0 - c4) * _I(8192) + r)
        wide, narrow = _I(c2 * _I(10703) + c6 * _I(4433)), _I(c2 * _I(4433) - c6 * _I(10704))
        e0, e1, e2, e3 = _I(plus + wide), _I(minus + narrow), _I(minus - narrow), _I(plus - wide)
        o0 = _I(c1 * _I(11363) + c3 * _I(9633) + c5 * _I(6437) + c7 * _I(2260))
        o1 = _I(c1 * _I(9633) - c3 * _I(2259) - c5 * _I(11362) - c7 * _I(6436))
        o2 = _I(c1 * _I(6437) - c3 * _I(11362) + c5 * _I(2261) + c7 * _I(9633))
        o3 = _I(c1 * _I(2260) - c3 * _I(6436) + c5 * _I(9633) - c7 * _I(11363))
        a0[b], a7[b] = _I(e0 + o0) >> shift, _I(e0 - o0) >> shift
        a1[b], a6[b] = _I(e1 + o1) >> shift, _I(e1 - o1) >> shift
        a2[b], a5[b] = _I(e2 + o2) >> shift, _I(e2 - o2) >> shift
        a3[b], a4[b] = _I(e3 + o3) >> shift, _I(e3 - o3) >> shift


@part
def _quantise(values, step):
    """The nearest whole multiple of a step; halves go away from zero.

    Half a unit above a whole number, no quotient lies so near another whole number that float32 could miss it.
    """
    share, half = np.float32(1 / (8 * step)), np.float32(4 * step) + np.float32(0.5)
    for b in range(_GROUP):
        value = values[b]
        size = _I((np.float32(abs(value)) + half) * share) * step
        values[b] = _I(-size if value < 0 else size)


@part
def _code(plane, table, t):
    """A plane of levels, its sides multiples of eight, through the transform, quantising and back, in place."""
    wide = plane.shape[1] // 8
    blocks = plane.shape[0] // 8 * wide
    for start in range(0, blocks, _GROUP):
        some = min(_GROUP, blocks - start)
        for b in range(some):
            y, x = (start + b) // wide * 8, (start + b) % wide * 8
            for i in range(8):
                row = plane[y + i, x : x + 8]
                for j in range(8):
                    t[8 * i + j, b] = _I(row[j]) - _I(128)
        for i in range(8):
            _forward(t, 8 * i, 1, 1024, 11)
        for j in range(8):
            _forward(t, j, 8, 16384, 15)
        for k in range(64):
            _quantise(t[k], table[k])
        for j in range(8):
            _inverse(t, j, 8, 1024, 11)
        for i in range(8):
            _inverse(t, 8 * i, 1, 131072, 18)
        for b in range(some):
            y, x = (start + b) // wide * 8, (start + b) % wide * 8
            for i in range(8):
                row = plane[y + i, x : x + 8]
                for j in range(8):
                    row[j] = np.uint8(min(max(t[8 * i + j, b] + _I(128), _I(0)), _I(255)))


@part
def _extend(plane, height, width):
    """Repeat the last row and column of what fills the corner of a plane."""
    for y in range(height):
        row = plane[y]
        for x in range(width, len(row)):
            row[x] = row[width - 1]
    for y in range(height, len(plane)):
        last, row = plane[height - 1], plane[y]
        for x in range(len(row)):
            row[x] = last[x]


@part
def _split_row(red, green, blue, light, cb, cr):
    """A row of pixels as luma, and what it adds to chroma."""
    for x in range(len(red)):
        r, g, b = _I(red[x]), _I(green[x]), _I(blue[x])
        light[x] = np.uint8(_I(_I(19595) * r + _I(38470) * g + _I(7471) * b + _I(32768)) >> 16)
        cb[x] = _I(_I(-11059) * r - _I(21709) * g + _I(32768) * b + _I(8421375)) >> 16
        cr[x] = _I(_I(32768) * r - _I(27439) * g - _I(5329) * b + _I(8421375)) >> 16


@part
def _halve_row(upper, lower, target, width):
    """Means of four; halves are rounded down and up in alternate columns. Columns are repeated before it."""
    for x in range(width, 2 * len(target)):
        upper[x] = upper[width - 1]
        lower[x] = lower[width - 1]
    for x in range(len(target)):
        total = upper[2 * x] + upper[2 * x + 1] + lower[2 * x] + lower[2 * x + 1]
        target[x] = np.uint8(_I(total + 1 + x % 2) >> 2)


@part
def _double_row(near, far, columns, mixed, doubled):
    """A row of chroma at twice the size by the triangle filter, centred."""
    for x in range(columns):
        mixed[x + 1] = _I(3) * _I(near[x]) + _I(far[x])
    mixed[0], mixed[columns + 1] = mixed[1], mixed[columns]
    left, right = mixed[:columns], mixed[2:]
    middle = mixed[1:]
    for x in range(columns):
        doubled[2 * x] = (_I(_I(3) * middle[x] + left[x] + _I(8)) >> 4) - _I(128)
        doubled[2 * x + 1] = (_I(_I(3) * middle[x] + right[x] + _I(7)) >> 4) - _I(128)


@part
def _clipped(value):
    return np.uint8(min(max(value, _I(0)), _I(255)))


@part
def _join_row(light, cb, cr, red, green, blue):
    for x in range(len(red)):
        base = _I(light[x]) * _I(32768) + _I(16384)
        red[x] = _clipped(_I(base + _I(45941) * cr[x]) >> 15)
        green[x] = _clipped(_I(base - _I(11277) * cb[x] - _I(23401) * cr[x]) >> 15)
        blue[x] = _clipped(_I(base + _I(58065) * cb[x]) >> 15)


@part
def _colour(levels, out, tables, light, blues, reds, rows, t):
    """One colour image; planes and rows are room to work in."""
    _, height, width = levels.shape
    tall, columns = (height + 1) // 2, (width + 1) // 2
    for y in range(tall):
        upper, lower = 2 * y, min(2 * y + 1, height - 1)
        _split_row(levels[0, upper], levels[1, upper], levels[2, upper], light[upper], rows[0], rows[1])
        _split_row(levels[0, lower], levels[1, lower], levels[2, lower], light[lower], rows[2], rows[3])
        _halve_row(rows[0], rows[2], blues[y], width)
        _halve_row(rows[1], rows[3], reds[y], width)
    _extend(light, height, width)
    _extend(blues, tall, blues.shape[1])
    _extend(reds, tall, reds.shape[1])
    _code(light, tables[0], t)
    _code(blues, tables[1], t)
    _code(reds, tables[1], t)
    for y in range(height):
        near, far = y // 2, min(max(y // 2 + 2 * (y % 2) - 1, 0), tall - 1)
        _double_row(blues[near], blues[far], columns, rows[0], rows[1])
        _double_row(reds[near], reds[far], columns, rows[0], rows[2])
        _join_row(light[y], rows[1], rows[2], out[0, y], out[1, y], out[2, y])


@shareable("tables")
def jpeg(levels, out, tables, kinds):
    """Uint8 images (B, C, H, W) after a round trip with tables (N, 2, 64) int32, image b with number kinds[b]."""
    batch, channels, height, width = levels.shape
    t = np.zeros((64, _GROUP), np.int32)
    light = np.empty(((height + 7) // 8 * 8, (width + 7) // 8 * 8), np.uint8)
    half = ((height + 15) // 16 * 8, (width + 15) // 16 * 8)
    blues, reds = np.empty(half, np.uint8), np.empty(half, np.uint8)
    rows = np.empty((4, 2 * half[1] + 2), np.int32)
    for image in range(batch):
        if channels == 3:
            _colour(levels[image], out[image], tables[kinds[image]], light, blues, reds, rows, t)
            continue
        for y in range(height):
            for x in range(width):
                light[y, x] = levels[image, 0, y, x]
        _extend(light, height, width)
        _code(light, tables[kinds[image], 0], t)
        for y in range(height):
            for x in range(width):
                out[image, 0, y, x] = light[y, x]
