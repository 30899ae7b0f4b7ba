"""Bilinear sampling as torch's `grid_sample` rounds it, and the elastic transform that is made of it.

Pixels lie as four floats side by side, so that all channels of one are read and mixed at a time.
"""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.blurs import filtered
from blemish.ops.compiled.jit import fma, kernel, part
from blemish.ops.compiled.levels import level, unit

_F = np.float32
_ZERO, _HALF, _ONE, _TWO = np.float32(0), np.float32(0.5), np.float32(1), np.float32(2)


@part
def _reflected(x, low, span, most):
    """A position within 0 … most: mirrored at ``low`` and at half of ``span`` above it, then cut."""
    away = abs(x - low)
    rest = away - np.trunc(away / span) * span
    other = span - rest
    inside = (rest if rest < other else other) + low
    inside = inside if inside > _ZERO else _ZERO
    return inside if inside < most else most


@part
def _from_corners(values, size, out):
    """Positions between −1 and 1, which are the first and last pixel's centres, in pixels."""
    scale, most = _F((size - 1) / 2), _F(size - 1)
    for i in range(len(out)):
        out[i] = _reflected((values[i] + _ONE) * scale, _ZERO, _F(2 * (size - 1)), most)


@part
def _from_edges(values, size, out):
    """Positions between −1 and 1, which are the first and last pixel's outer edges, in pixels."""
    scale, most = _F(size / 2), _F(size - 1)
    for i in range(len(out)):
        out[i] = _reflected(fma(values[i] + _ONE, scale, -_HALF), -_HALF, _F(2 * size), most)


@part
def _sample_row(pixels, x, y, out):
    """A row of the picture (H, W, 4) at positions (x, y) inside it."""
    height, width, _ = pixels.shape
    for i in range(len(x)):
        left, top = np.floor(x[i]), np.floor(y[i])
        right_share, down_share = x[i] - left, y[i] - top
        left_share, up_share = _ONE - right_share, _ONE - down_share
        column, row = int(left), int(top)
        beside, below = min(column + 1, width - 1), min(row + 1, height - 1)
        a, b = pixels[row, column], pixels[row, beside]
        c, d = pixels[below, column], pixels[below, beside]
        first, second = left_share * up_share, right_share * up_share
        third, fourth = left_share * down_share, right_share * down_share
        for channel in range(4):
            value = fma(b[channel], second, a[channel] * first)
            out[i, channel] = fma(d[channel], fourth, fma(c[channel], third, value))


@part
def _interleave(levels, pixels):
    channels, height, width = levels.shape
    for y in range(height):
        for x in range(width):
            for channel in range(channels):
                pixels[y, x, channel] = unit(levels[channel, y, x])


@part
def _to_levels(pixels, out, y):
    """A row of pixels as levels."""
    for channel in range(len(out)):
        target = out[channel, y]
        for x in range(len(target)):
            target[x] = level(pixels[x, channel])


@part
def _affine(pixels, per_column, per_row, warped):
    """Sample at affine positions, which lie in 1/1024 pixel, rounded to 1/32."""
    height, width, _ = pixels.shape
    grid, x, y = np.empty(width, np.float32), np.empty(width, np.float32), np.empty(width, np.float32)
    scale_x, scale_y = _F(2 / (32 * (width - 1))), _F(2 / (32 * (height - 1)))
    for row in range(height):
        for i in range(width):
            grid[i] = _F((per_column[0, i] + per_row[0, row] + np.int32(16)) >> np.int32(5)) * scale_x - _ONE
        _from_corners(grid, width, x)
        for i in range(width):
            grid[i] = _F((per_column[1, i] + per_row[1, row] + np.int32(16)) >> np.int32(5)) * scale_y - _ONE
        _from_corners(grid, height, y)
        _sample_row(pixels, x, y, warped[row])


@part
def _displace(pixels, fields, strength, out):
    """Sample where two fields (2, H, W), right and down, times ``strength``, lead; levels (C, H, W)."""
    height, width, _ = pixels.shape
    x, y = np.empty(width, np.float32), np.empty(width, np.float32)
    grid, line = np.empty(width, np.float32), np.empty((width, 4), np.float32)
    wide, tall = _F(width), _F(height)
    for row in range(height):
        right, down = fields[0, row], fields[1, row]
        for i in range(width):
            grid[i] = ((right[i] * strength + _F(i)) * _TWO + _ONE) / wide - _ONE
        _from_edges(grid, width, x)
        for i in range(width):
            grid[i] = ((down[i] * strength + _F(row)) * _TWO + _ONE) / tall - _ONE
        _from_edges(grid, height, y)
        _sample_row(pixels, x, y, line)
        _to_levels(line, out, row)


@part
def _backward(points, moves, strength, a, b):
    """What `blemish.ops.warp.affine_from_points` gives for one image, (3, 2) into ``b``; ``a`` (3, 3) is room."""
    for i in range(3):
        for j in range(2):
            a[i, j] = points[i, j] + np.float64(moves[i, j]) * strength
            b[i, j] = points[i, j]
        a[i, 2] = 1.0
    for column in range(2):
        pivot = column
        for i in range(column + 1, 3):
            pivot = i if abs(a[i, column]) > abs(a[pivot, column]) else pivot
        for j in range(3):
            a[column, j], a[pivot, j] = a[pivot, j], a[column, j]
        for j in range(2):
            b[column, j], b[pivot, j] = b[pivot, j], b[column, j]
        inverse = 1 / a[0, 0]
        for i in range(column + 1, 3):
            a[i, column] = a[i, 0] * inverse if column == 0 else a[i, 1] / a[1, 1]
            for j in range(column + 1, 3):
                a[i, j] -= a[i, column] * a[column, j]
    for j in range(2):
        b[1, j] -= a[1, 0] * b[0, j]
        b[2, j] = (b[2, j] - (a[2, 0] * b[0, j] + a[2, 1] * b[1, j])) * (1 / a[2, 2])
        b[1, j] = (b[1, j] - a[1, 2] * b[2, j]) * (1 / a[1, 1])
        b[0, j] = (b[0, j] - (a[0, 1] * b[1, j] + a[0, 2] * b[2, j])) * (1 / a[0, 0])


@kernel
def drawn_positions(points, moves, strength, height, width):
    """What `blemish.ops.warp.drawn_positions` gives, (B, 2, W) and (B, 2, H) int32."""
    batch = len(moves)
    columns, rows = np.empty((batch, 2, width), np.int32), np.empty((batch, 2, height), np.int32)
    room, backward = np.empty((3, 3), np.float64), np.empty((3, 2), np.float64)
    for image in range(batch):
        _backward(points, moves[image], strength[image], room, backward)
        for axis in range(2):
            for x in range(width):
                columns[image, axis, x] = np.int32(np.rint(backward[0, axis] * x * 1024))
            for y in range(height):
                rows[image, axis, y] = np.int32(np.rint((backward[1, axis] * y + backward[2, axis]) * 1024))
    return columns, rows


@kernel
def elastic(levels, out, per_column, per_row, fields, weights, radii, strength):
    """An affine map, positions (B, 2, W) and (B, 2, H) int32, then a displacement by blurred fields (B, 2, H, W)."""
    batch, _, height, width = levels.shape
    pixels, warped = np.zeros((height, width, 4), np.float32), np.empty((height, width, 4), np.float32)
    smooth = np.empty((2, height, width), np.float32)
    for image in range(batch):
        _interleave(levels[image], pixels)
        _affine(pixels, per_column[image], per_row[image], warped)
        if strength[image] > 0:
            filtered(fields[image], weights[image], radii[image], 1, smooth)
            _displace(warped, smooth, _F(strength[image]), out[image])
        else:
            for row in range(height):
                _to_levels(warped[row], out[image], row)
