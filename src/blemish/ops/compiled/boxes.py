"""Pixelating levels: means of boxes, repeated."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import fma, part, shareable

_F, _I = np.float32, np.int32

# Halves go up, float noise or not.
_ROUNDING = np.float32(0.5 + 2.0**-12)


@part
def _shrunk(row, pixels, weights, out, picked):
    """A row's means over boxes, whole numbers held as float32; taps and weights are (taps, boxes)."""
    for tap in range(len(pixels)):
        places, shares = pixels[tap], weights[tap]
        for x in range(len(out)):
            picked[x] = row[places[x]]
        if tap == 0:
            for x in range(len(out)):
                out[x] = _F(picked[x]) * shares[x]
        else:
            for x in range(len(out)):
                out[x] = fma(_F(picked[x]), shares[x], out[x])
    for x in range(len(out)):
        out[x] = np.floor(out[x] + _ROUNDING)


@shareable("columns", "column_weights", "rows", "row_weights", "wide", "tall")
def pixelate(levels, out, columns, column_weights, rows, row_weights, wide, tall):
    """Shrink (N, H, W) uint8 by taps (taps, width) and (taps, height), columns first, and repeat pixels.

    ``wide`` and ``tall`` say which small column and row stands at each place of the result.
    """
    count, height, width = levels.shape
    small, total = np.empty(columns.shape[1], np.float32), np.empty(columns.shape[1], np.float32)
    picked, line = np.empty(columns.shape[1], np.uint8), np.empty(columns.shape[1], np.uint8)
    for plane in range(count):
        last = -1
        for y in range(height):
            target = out[plane, y]
            if tall[y] == last:
                above = out[plane, y - 1]
                for x in range(width):
                    target[x] = above[x]
                continue
            last = tall[y]
            for tap in range(len(rows)):
                share = row_weights[tap, last]
                if share == 0:
                    continue
                _shrunk(levels[plane, rows[tap, last]], columns, column_weights, small, picked)
                if tap == 0:
                    for x in range(len(small)):
                        total[x] = small[x] * share
                else:
                    for x in range(len(small)):
                        total[x] = fma(small[x], share, total[x])
            for x in range(len(total)):
                line[x] = np.uint8(_I(np.floor(total[x] + _ROUNDING)))
            for x in range(width):
                target[x] = line[wide[x]]
