"""Diamond-square fields, as `blemish.ops.plasma` makes them, and fog made of them."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import kernel, part
from blemish.ops.compiled.levels import level, unit

_F = np.float32
_QUARTER = np.float32(0.25)


@part
def _grown(wobble, noise, field, other, centres):
    """The map of an image in ``field`` or ``other``, whichever is returned; both hold side² values."""
    size, used = 1, 0
    field[0] = _F(0)
    for number in range(len(noise)):
        scale, count = noise[number], size * size
        for y in range(size):
            here, below = field[y * size : (y + 1) * size], field[(y + 1) % size * size :][:size]
            random = wobble[used + y * size :][:size]
            middle = centres[y * size : (y + 1) * size]
            for x in range(size - 1):
                middle[x] = ((here[x] + below[x]) + (here[x + 1] + below[x + 1])) * _QUARTER + scale * random[x]
            x = size - 1
            middle[x] = ((here[x] + below[x]) + (here[0] + below[0])) * _QUARTER + scale * random[x]
        for y in range(size):
            here, below = field[y * size : (y + 1) * size], field[(y + 1) % size * size :][:size]
            middle, above = centres[y * size : (y + 1) * size], centres[(y - 1) % size * size :][:size]
            first, second = wobble[used + count + y * size :][:size], wobble[used + 2 * count + y * size :][:size]
            even, odd = other[4 * y * size :][: 2 * size], other[(4 * y + 2) * size :][: 2 * size]
            for x in range(size):
                both = middle[x] + here[x]
                after = here[x + 1] if x + 1 < size else here[0]
                before = middle[x - 1] if x > 0 else middle[size - 1]
                even[2 * x] = here[x]
                even[2 * x + 1] = ((above[x] + after) + both) * _QUARTER + scale * first[x]
                odd[2 * x] = ((before + below[x]) + both) * _QUARTER + scale * second[x]
                odd[2 * x + 1] = middle[x]
        field, other = other, field
        used += 3 * count
        size *= 2
    return field


@part
def _extent(values):
    """The least value, and the largest distance from it. Sixteen at a time, because each compares with the last."""
    lowest, highest = np.full(16, values[0]), np.full(16, values[0])
    for start in range(0, len(values) - 15, 16):
        for i in range(16):
            value = values[start + i]
            lowest[i] = value if value < lowest[i] else lowest[i]
            highest[i] = value if value > highest[i] else highest[i]
    for i in range(len(values) // 16 * 16, len(values)):
        lowest[0] = min(lowest[0], values[i])
        highest[0] = max(highest[0], values[i])
    least = lowest.min()
    return least, highest.max() - least


@kernel
def plasma(wobble, noise):
    """Maps (B, side, side) in 0 … 1 from uniform values (B, all of all levels) and noise (B, levels), float32."""
    batch, side = len(wobble), 1 << noise.shape[1]
    out = np.empty((batch, side * side), np.float32)
    field, other = np.empty(side * side, np.float32), np.empty(side * side, np.float32)
    centres = np.empty(max(1, side * side // 4), np.float32)
    for image in range(batch):
        made = _grown(wobble[image], noise[image], field, other, centres)
        low, span = _extent(made)
        own = out[image]
        for i in range(len(made)):
            own[i] = (made[i] - low) / span
    return out.reshape(batch, side, side)


@kernel
def fog(levels, out, wobble, noise, thickness):
    """(Level + map · thickness) · brightest / (brightest + thickness); images (B, C, H, W) uint8."""
    batch, channels, height, width = levels.shape
    side = 1 << noise.shape[1]
    field, other = np.empty(side * side, np.float32), np.empty(side * side, np.float32)
    centres = np.empty(max(1, side * side // 4), np.float32)
    for image in range(batch):
        made = _grown(wobble[image], noise[image], field, other, centres)
        low, span = _extent(made)
        thick = _F(thickness[image])
        brightest = unit(_largest(levels[image].reshape(channels * height * width)))
        gain = brightest / (brightest + thick)
        for row in range(height):
            layer = made[row * side :][:width]
            for i in range(width):
                layer[i] = (layer[i] - low) / span * thick
            for channel in range(channels):
                source, target = levels[image, channel, row], out[image, channel, row]
                for i in range(width):
                    target[i] = level((unit(source[i]) + layer[i]) * gain)


@part
def _largest(values):
    most = np.uint8(0)
    for i in range(len(values)):
        most = max(most, values[i])
    return most
