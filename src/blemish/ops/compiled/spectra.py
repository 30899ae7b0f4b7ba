"""Noise with a given spectrum, beside the Fourier transform: what goes into it, and what is made of its result.

Every product and sum is rounded once, as torch rounds its doubles.
"""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import kernel, part


@kernel
def spectra(cos, sin, out, weight):
    """Weighted waves (B, n, H, W, 2) from the cosines and sines (B, n, H, ⌈W/2⌉) of the left half's phases.

    The right half has those of the left one, turned by 180 degrees. Weights (H, W) have frequency 0 in the middle, the
    result has it first.
    """
    batch, fields, height = out.shape[:3]
    for image in range(batch):
        for field in range(fields):
            for y in range(height):
                row = out[image, field, (y - height // 2) % height]
                _put(cos[image, field, y], sin[image, field, y], weight[y], row)
                other = height - 1 - y
                _put_turned(cos[image, field, other], sin[image, field, other], weight[y], row)


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
    """The real parts of (B, n, H, W, 2), each plane over its standard deviation, by Welford's updates as in torch."""
    batch, fields, height, width = out.shape
    size = height * width
    planes, results = waves.reshape(batch * fields, size, 2), out.reshape(batch * fields, size)
    for first in range(0, batch * fields, _ABREAST):
        # Several planes at a time, because each update waits for the last one.
        some = min(_ABREAST, batch * fields - first)
        a, b = planes[first], planes[first + min(1, some - 1)]
        c, d = planes[first + min(2, some - 1)], planes[first + min(3, some - 1)]
        squares = np.zeros(_ABREAST)
        mean_a, mean_b, mean_c, mean_d, of_a, of_b, of_c, of_d = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(size):
            count = np.float64(i + 1)
            mean_a, of_a = _updated(mean_a, of_a, a[i, 0], count)
            mean_b, of_b = _updated(mean_b, of_b, b[i, 0], count)
            mean_c, of_c = _updated(mean_c, of_c, c[i, 0], count)
            mean_d, of_d = _updated(mean_d, of_d, d[i, 0], count)
        squares[0], squares[1], squares[2], squares[3] = of_a, of_b, of_c, of_d
        for number in range(some):
            deviation = np.sqrt(squares[number] / size)
            source, target = planes[first + number], results[first + number]
            for i in range(size):
                target[i] = source[i, 0] / deviation


@part
def _updated(mean, squares, value, count):
    away = value - mean
    mean += away / count
    return mean, squares + away * (value - mean)
