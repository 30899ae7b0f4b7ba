"""The weighted mean of turned images, sampled by cubic splines: all planes of a batch side by side in memory.

Places and weights are worked out in double precision once for all planes; sums are of float32, rounded at every step.
"""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import kernel, part


@part
def _taps(y, width, height, cos, sin, share, first, row_weights, column_weights):
    """Where the pixels of row y come from, and the weights of four rows and columns there; 0 outside the image."""
    middle_row, middle_column = (height - 1) / 2, (width - 1) / 2
    down = y - middle_row
    for x in range(width):
        right = x - middle_column
        row = cos * down + sin * right + middle_row
        column = -sin * down + cos * right + middle_column
        inside = row >= 0 and row <= height - 1 and column >= 0 and column <= width - 1
        top = min(max(np.floor(row), 0.0), height - 1.0)
        left = min(max(np.floor(column), 0.0), width - 1.0)
        first[x] = int(top) * (width + 3) + int(left)
        here = share if inside else 0.0
        a, b, c, d = _spline_weights(row - top)
        row_weights[0, x], row_weights[1, x] = np.float32(a), np.float32(b)
        row_weights[2, x], row_weights[3, x] = np.float32(c), np.float32(d)
        a, b, c, d = _spline_weights(column - left)
        column_weights[0, x], column_weights[1, x] = np.float32(a * here), np.float32(b * here)
        column_weights[2, x], column_weights[3, x] = np.float32(c * here), np.float32(d * here)


@part
def _spline_weights(t):
    z = 1 - t
    first = z * z * z / 6
    second = (t * t * (t - 2) * 3 + 4) / 6
    third = (z * z * (z - 2) * 3 + 4) / 6
    return first, second, third, 1 - first - second - third


@kernel
def turned_mean(coefficients, turns, out):
    """Coefficients of splines (H + 3, W + 3, planes), cosines, sines and shares of turns (turns, 3): (H, W, planes)."""
    height, width, planes = out.shape
    flat = coefficients.reshape(coefficients.size)
    stride = (width + 3) * planes
    first = np.empty(width, np.int64)
    row_weights, column_weights = np.empty((4, width), np.float32), np.empty((4, width), np.float32)
    for y in range(height):
        total = out[y].reshape(width * planes)
        total[:] = 0
        for turn in range(len(turns)):
            _taps(y, width, height, turns[turn, 0], turns[turn, 1], turns[turn, 2], first, row_weights, column_weights)
            for x in range(width):
                _add(
                    flat,
                    np.uint64(first[x] * planes),
                    np.uint64(stride),
                    np.uint64(planes),
                    column_weights[0, x],
                    column_weights[1, x],
                    column_weights[2, x],
                    column_weights[3, x],
                    row_weights[0, x],
                    row_weights[1, x],
                    row_weights[2, x],
                    row_weights[3, x],
                    total,
                    np.uint64(x * planes),
                )


@part
def _add(flat, start, stride, planes, a, b, c, d, e, f, g, h, total, offset):
    """Add the weighted sum of four neighbours in each of four rows, of all planes.

    Numbers without a sign, because places that might be negative keep the loop from being vectorised.
    """
    for i in range(planes):
        value = total[offset + i]
        first = start + i
        second, third, fourth = first + planes, first + planes + planes, first + planes + planes + planes
        value += (((flat[first] * a + flat[second] * b) + flat[third] * c) + flat[fourth] * d) * e
        first, second, third, fourth = first + stride, second + stride, third + stride, fourth + stride
        value += (((flat[first] * a + flat[second] * b) + flat[third] * c) + flat[fourth] * d) * f
        first, second, third, fourth = first + stride, second + stride, third + stride, fourth + stride
        value += (((flat[first] * a + flat[second] * b) + flat[third] * c) + flat[fourth] * d) * g
        first, second, third, fourth = first + stride, second + stride, third + stride, fourth + stride
        value += (((flat[first] * a + flat[second] * b) + flat[third] * c) + flat[fourth] * d) * h
        total[offset + i] = value
