"""Noise with a given spectrum, beside the Fourier transform: what goes into it, and what is made of its result.

Every product and sum is rounded once, as torch rounds its doubles.
"""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import kernel, part


@kernel
def spectra(cos, sin, out, weight):
    """Weighted waves from the cosines and sines (B, n, H, ⌈W/2⌉) of the left half's phases: the part that is real.

    The right half has those of the left one, turned by 180 degrees. Weights (H, W) have frequency 0 in the middle. The
    result (B, n, H, ⌊W/2⌋ + 1, 2) has it first, and frequencies that are not negative: each is the mean of the wave of
    this frequency and the conjugate of that of the opposite one.
    """
    batch, fields, height, columns = out.shape[:4]
    width = weight.shape[1]
    row, opposite = np.empty((width, 2)), np.empty((width, 2))
    for image in range(batch):
        for field in range(fields):
            for number in range(height // 2 + 1):
                other = (height - number) % height
                _wave(cos[image, field], sin[image, field], weight, number, row)
                _wave(cos[image, field], sin[image, field], weight, other, opposite)
                target, mirrored = out[image, field, number], out[image, field, other]
                for x in range(columns):
                    back = width - x if x > 0 else 0
                    target[x, 0] = (row[x, 0] + opposite[back, 0]) * 0.5
                    target[x, 1] = (row[x, 1] - opposite[back, 1]) * 0.5
                    mirrored[x, 0] = (opposite[x, 0] + row[back, 0]) * 0.5
                    mirrored[x, 1] = (opposite[x, 1] - row[back, 1]) * 0.5


@part
def _wave(cos, sin, weight, number, row):
    """The row of a frequency."""
    height = len(weight)
    y = (number + height // 2) % height
    _put(cos[y], sin[y], weight[y], row)
    _put_turned(cos[height - 1 - y], sin[height - 1 - y], weight[y], row)


@part
def _put(cos, sin, weight, row):
    width = len(row)
    for x in range(len(cos)):
        column = x - width // 2 + (width if x < width // 2 else 0)
        row[column, 0], row[column, 1] = cos[x] * weight[x], sin[x] * weight[x]


@part
def _put_turned(cos, sin, weight, row):
    width, half = len(row), len(cos)
    for x in range(width // 2):
        column, own = half + x - width // 2, weight[half + x]
        row[column, 0], row[column, 1] = cos[width // 2 - 1 - x] * own, sin[width // 2 - 1 - x] * own


_ABREAST = 4


@kernel
def standardised(waves, out):
    """Planes (B, n, H, W), each over its standard deviation, by Welford's updates as in torch."""
    batch, fields, height, width = out.shape
    size = height * width
    planes, results = waves.reshape(batch * fields, size), out.reshape(batch * fields, size)
    for first in range(0, batch * fields, _ABREAST):
        # Several planes at a time, because each update waits for the last one.
        some = min(_ABREAST, batch * fields - first)
        a, b = planes[first], planes[first + min(1, some - 1)]
        c, d = planes[first + min(2, some - 1)], planes[first + min(3, some - 1)]
        squares = np.zeros(_ABREAST)
        mean_a, mean_b, mean_c, mean_d, of_a, of_b, of_c, of_d = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(size):
            count = np.float64(i + 1)
            mean_a, of_a = _updated(mean_a, of_a, a[i], count)
            mean_b, of_b = _updated(mean_b, of_b, b[i], count)
            mean_c, of_c = _updated(mean_c, of_c, c[i], count)
            mean_d, of_d = _updated(mean_d, of_d, d[i], count)
        squares[0], squares[1], squares[2], squares[3] = of_a, of_b, of_c, of_d
        for number in range(some):
            deviation = np.sqrt(squares[number] / size)
            source, target = planes[first + number], results[first + number]
            for i in range(size):
                target[i] = source[i] / deviation


@part
def _updated(mean, squares, value, count):
    away = value - mean
    mean += away / count
    return mean, squares + away * (value - mean)
