"""Outlines, as `blemish.ops.edges.canny` finds them, in whole numbers: planes (H + 2, W + 2) int16 with a margin."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.flat import copy
from blemish.ops.compiled.jit import part


@part
def load(levels, plane):
    """Levels between margins that repeat the edge."""
    height, width = levels.shape
    for y in range(height):
        row, source = plane[y + 1], levels[y]
        copy(source, row[1 : width + 1])
        row[0], row[width + 1] = source[0], source[width - 1]
    copy(plane[1], plane[0])
    copy(plane[height], plane[height + 1])


@part
def short(value):
    """In 16 bits, where numba would take 64."""
    return np.int16(value)


@part
def _magnitude(value):
    return short(value if value > 0 else -value)


@part
def gradients(plane, norms, ways):
    """The norm |dx| + |dy| of Sobel's gradient, and its direction: 0 and 1 diagonal, 2 steep, 3 flat."""
    height, width = plane.shape[0] - 2, plane.shape[1] - 2
    for y in range(height):
        above, here, below = plane[y], plane[y + 1], plane[y + 2]
        a, b, c = above[:width], above[1:][:width], above[2:][:width]
        d, e = here[:width], here[2:][:width]
        f, g, h = below[:width], below[1:][:width], below[2:][:width]
        norm, way = norms[y + 1, 1:][:width], ways[y]
        for x in range(width):
            corners, others = short(h[x] - a[x]), short(c[x] - f[x])
            across = short(corners + others + 2 * (e[x] - d[x]))
            down = short(corners - others + 2 * (g[x] - b[x]))
            turned = short(1) if short(across ^ down) < 0 else short(0)
            across, down = _magnitude(across), _magnitude(down)
            bound = short(np.int32(across) * np.int32(13573) >> np.int32(15))  # the tangent of 22.5°
            turned = short(2) if down > short(bound + 2 * across) else turned
            way[x] = short(3) if down <= bound else turned
            norm[x] = short(across + down)


@part
def _ridges(norms, ways, row, low, high, marks):
    """Where the norm is largest along the gradient and above ``low``: 1, or 2 above ``high``.

    Of equal neighbours the first wins in a row or a column, and none on a diagonal.
    """
    size = len(marks)
    above, here, below = norms[row], norms[row + 1], norms[row + 2]
    a, b, c, d = above[:size], above[1:][:size], above[2:][:size], here[:size]
    e, f = here[1:][:size], here[2:][:size]
    g, h, i = below[:size], below[1:][:size], below[2:][:size]
    way = ways[row]
    for x in range(size):
        turn, norm = way[x], e[x]
        before = c[x] if turn == 1 else a[x]
        after = g[x] if turn == 1 else i[x]
        before = b[x] if turn == 2 else before
        after = h[x] if turn == 2 else after
        before = d[x] if turn == 3 else before
        after = f[x] if turn == 3 else after
        most = short(norm + 1) if turn >= 2 else norm
        least = short(1) if norm > low else short(0)
        least = short(2) if norm > high else least
        least = least if norm > before else short(0)
        marks[x] = least if most > after else short(0)


@part
def find_edges(norms, ways, low, high, edges, waiting):
    """Ridges above ``low`` that a chain of such neighbours joins to one above ``high``: 2 there, less elsewhere."""
    height, width = ways.shape
    stride, stacked = width + 2, 0
    for y in range(height):
        marks, first = edges[y + 1, 1:][:width], (y + 1) * stride + 1
        _ridges(norms, ways, y, low, high, marks)
        for x in range(width):
            waiting[stacked] = first + x
            stacked += marks[x] == 2
    flat = edges.reshape(edges.size)
    while stacked > 0:
        stacked -= 1
        pixel = waiting[stacked]
        for down in range(-1, 2):
            for right in range(-1, 2):
                other = pixel + down * stride + right
                if flat[other] == 1:
                    flat[other] = 2
                    waiting[stacked] = other
                    stacked += 1
