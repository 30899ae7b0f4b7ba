"""Light at the bottom of moving water, in double precision; see cbar's caustics."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled import terms
from blemish.ops.compiled.doubles import bilinear_row
from blemish.ops.compiled.jit import kernel, part

_SINE, _COSINE, _BINOMIAL, _SCALE, _POWER = terms.SINE, terms.COSINE, terms.BINOMIAL, terms.SCALE, terms.POWER


# Each sum in one expression: of a loop over terms no compiler makes work for several pixels at a time.


@part
def _sine(angle, t):
    a, b, c, d, e, f, g, h, i, j, k = _SINE
    return ((((((((((k * t + j) * t + i) * t + h) * t + g) * t + f) * t + e) * t + d) * t + c) * t + b) * t + a) * angle


@part
def _cosine(t):
    a, b, c, d, e, f, g, h, i, j, k, last = _COSINE
    upper = (((((last * t + k) * t + j) * t + i) * t + h) * t + g) * t + f
    return ((((upper * t + e) * t + d) * t + c) * t + b) * t + a


@part
def _power_of_fifth(value):
    t = 1 / np.sqrt(1 / np.sqrt(value)) * _SCALE - 1
    a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r = _BINOMIAL  # noqa: E741
    upper = ((((((((r * t + q) * t + p) * t + o) * t + n) * t + m) * t + l) * t + k) * t + j) * t + i
    return ((((((((upper * t + h) * t + g) * t + f) * t + e) * t + d) * t + c) * t + b) * t + a) * _POWER


@kernel
def caustics(moments, rows, columns, out):
    """The pattern (B, H, W) of waves at five moments (B, 2, loops), cosine and sine.

    Of rows (B, 3, H) and columns (B, 3, W) the sine, the cosine and the square of the slope.
    """
    batch, height, width = out.shape
    row_sine, row_cosine = np.empty(width), np.empty(width)
    column_sine, column_cosine = np.empty(width), np.empty(width)
    for image in range(batch):
        start_sine, start_cosine, steep = columns[image, 0], columns[image, 1], columns[image, 2]
        for y in range(height):
            sine, cosine, slope = rows[image, 0, y], rows[image, 1, y], rows[image, 2, y]
            light = out[image, y]
            row_sine[:], row_cosine[:] = sine, cosine
            column_sine[:], column_cosine[:] = start_sine, start_cosine
            light[:] = 1
            for loop in range(moments.shape[2]):
                near, aside = moments[image, 0, loop], moments[image, 1, loop]
                for x in range(width):
                    down = (row_cosine[x] + column_sine[x]) * near + (row_sine[x] + column_cosine[x]) * aside
                    right = (row_cosine[x] - column_sine[x]) * near + (column_cosine[x] - row_sine[x]) * aside
                    square = down * down
                    s, c = _sine(down, square), _cosine(square)
                    p, q = sine * c + cosine * s, cosine * c - sine * s
                    square = right * right
                    s, c = _sine(right, square), _cosine(square)
                    u, v = start_sine[x] * c + start_cosine[x] * s, start_cosine[x] * c - start_sine[x] * s
                    row_sine[x], row_cosine[x], column_sine[x], column_cosine[x] = p, q, u, v
                    s, c = p * near + q * aside, v * near - u * aside
                    light[x] += abs(s * c) * (1 / np.sqrt((c * c) * slope + (s * s) * steep[x]))
            for x in range(width):
                value = 1.17 - _power_of_fifth(light[x])
                value = value * value
                value = value * value
                value = value * value
                light[x] = min(value, 1.0)


_STEEP, _INDEX = 0.999, 4


@part
def _bends(above, line, below, lens, down, right, shade):
    """How far light of a row of pixels is bent, down and right, by a surface with the rows beside it; and its shade."""
    for x in range(len(down)):
        fall, rise = below[x + 1] - above[x + 1], line[x + 2] - line[x]
        square = fall * fall + rise * rise
        upward = 1 / np.sqrt(square + 1)
        ahead = 1 - square * (upward * upward) / _INDEX**2
        bent = (ahead * (1 / np.sqrt(ahead)) - upward / _INDEX) * upward
        bent = (0.0 if upward >= _STEEP else bent) * lens
        down[x], right[x] = np.rint(fall * bent * 1000) / 1000, np.rint(rise * bent * 1000) / 1000
        shade[x] = fall - rise


@kernel
def refracted(levels, surface, lens, lighting, out):
    """Levels (B, C, H, W) seen through surfaces (B, H, W), which bend light by ``lens`` (B) and shade it."""
    batch, channels, height, width = levels.shape
    padded = np.zeros((height + 2, width + 2))
    down, right, shade = np.empty(width), np.empty(width), np.empty(width)
    seen = np.empty((channels, width))
    for image in range(batch):
        padded[1:-1, 1:-1] = surface[image]
        for y in range(height):
            _bends(padded[y], padded[y + 1], padded[y + 2], lens[image], down, right, shade)
            for x in range(width):
                down[x], right[x] = y + down[x], x + right[x]
            bilinear_row(levels[image], down, right, seen)
            for channel in range(channels):
                line, target = seen[channel], out[image, channel, y]
                for x in range(width):
                    value = shade[x] * lighting[image] + line[x] / 255
                    value = value if value > 0.0 else 0.0
                    target[x] = np.uint8(np.int32((value if value < 1.0 else 1.0) * 255))
