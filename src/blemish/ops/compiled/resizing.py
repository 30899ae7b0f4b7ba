"""Resizing levels by whole-number weights of 2^22, columns first, each pass rounded; see `blemish.ops.pillow`."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import kernel, part

_I = np.int32
_BITS, _HALF = 22, np.int32(2**21)


@part
def _level(total):
    return np.uint8(min(max(total >> _BITS, 0), 255))


@kernel
def resized(levels, out, first_columns, column_weights, first_rows, row_weights):
    """Levels (N, H, W) at another size, (N, h, w): for each place its first source and its weights, (w, taps).

    Sources lie side by side. Those beyond the border have no weight.
    """
    planes, height = levels.shape[:2]
    tall, wide = out.shape[1:]
    narrow, total = np.empty((height, wide), np.int32), np.empty(wide, np.int32)
    for plane in range(planes):
        for y in range(height):
            line, target = levels[plane, y], narrow[y]
            for x in range(wide):
                first, shares = first_columns[x], column_weights[x]
                own = line[first : first + len(shares)]
                value = _HALF
                for tap in range(len(own)):
                    value = _I(value + _I(own[tap]) * shares[tap])
                target[x] = _level(value)
        for y in range(tall):
            total[:] = _HALF
            first, shares = first_rows[y], row_weights[y]
            for tap in range(min(len(shares), height - first)):
                share, line = shares[tap], narrow[first + tap]
                for x in range(wide):
                    total[x] = _I(total[x] + line[x] * share)
            target = out[plane, y]
            for x in range(wide):
                target[x] = _level(total[x])
