"""Medians of wide windows, by a histogram that slides along each row."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import kernel


@kernel
def medians(padded, out, side):
    """The median of the side × side window that begins at each place of planes (N, H + side − 1, W + side − 1), uint8.

    Huang's algorithm: from place to place one column leaves the histogram and one comes in, and the median moves by as
    many levels as that takes.
    """
    planes, height, width = out.shape
    rank = side * side // 2
    counts = np.empty(256, np.int32)
    for plane in range(planes):
        for row in range(height):
            window = padded[plane, row : row + side]
            counts[:] = 0
            for y in range(side):
                for x in range(side):
                    counts[window[y, x]] += 1
            # So many values lie below the median, which is the first level that they and its own exceed the rank at.
            median, below = 0, 0
            for column in range(width):
                if column > 0:
                    for y in range(side):
                        old, new = window[y, column - 1], window[y, column + side - 1]
                        counts[old] -= 1
                        counts[new] += 1
                        below += (new < median) - (old < median)
                while below > rank:
                    median -= 1
                    below -= counts[median]
                while below + counts[median] <= rank:
                    below += counts[median]
                    median += 1
                out[plane, row, column] = median
