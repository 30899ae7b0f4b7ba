"""What is nearest: tiles to colours, in whole numbers, and levels to amounts of light."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import kernel


@kernel
def nearest_tiles(wanted, out, sums, numbers, brightness):
    """The number of the tile nearest to each colour (N, 3), all int64; of several the one with the lowest number.

    ``sums`` (T, 3) and ``numbers`` are those of tiles in the order of their brightness, the total of a sum. Two colours
    are at least as far apart as their brightness, over the root of 3: the search ends where that is too much.
    """
    tiles = len(sums)
    for i in range(len(wanted)):
        red, green, blue = wanted[i, 0], wanted[i, 1], wanted[i, 2]
        total = red + green + blue
        above = np.searchsorted(brightness, total)
        below = above - 1
        best, chosen = np.int64(2**60), np.int64(-1)
        while below >= 0 or above < tiles:
            up = brightness[above] - total if above < tiles else np.int64(2**31)
            down = total - brightness[below] if below >= 0 else np.int64(2**31)
            nearer = up if up < down else down
            if nearer * nearer > 3 * best:
                break
            if up < down:
                candidate = above
                above += 1
            else:
                candidate = below
                below -= 1
            a, b, c = sums[candidate, 0] - red, sums[candidate, 1] - green, sums[candidate, 2] - blue
            distance = a * a + b * b + c * c
            if distance < best or (distance == best and numbers[candidate] < chosen):
                best, chosen = distance, numbers[candidate]
        out[i] = chosen


@kernel
def nearest_levels(light, out, midway, guesses):
    """How many of the ascending ``midway`` are below each amount of light in 0 … 1, all float64.

    ``guesses`` has for equal steps from 0 to 1 how many are below the step.
    """
    steps = len(guesses) - 1
    for i in range(len(light)):
        value = light[i]
        number = guesses[int(value * steps)]
        while number < len(midway) and midway[number] < value:
            number += 1
        out[i] = number
