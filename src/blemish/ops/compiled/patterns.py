"""Patterns in double precision over whole images: rays of light, noise, folded planes, and lines drawn one by one."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import kernel, part


@kernel
def sparkle(levels, angles, centres, counts, lengths, opacity):
    """Brighten levels (B, C, H, W) float32 by one sparkle each, in place; see cbar's sparkles.

    ``angles`` (B, H, W) are those about the centre (B, 2), row and column; ``counts`` (B) and ``lengths`` (B, most) are
    those of its rays.
    """
    batch, channels, height, width = levels.shape
    gain = np.empty(width)
    for image in range(batch):
        rays = counts[image]
        for y in range(height):
            down = y - centres[image, 0]
            for x in range(width):
                across = x - centres[image, 1]
                turn = (angles[image, y, x] + np.pi) / (2 * np.pi) * rays
                first = np.floor(turn)
                between = turn - first
                before = lengths[image, int(first if first < rays else first - rays)]
                second = first + 1
                after = lengths[image, int(second if second < rays else second - rays)]
                length = (after - before) * between + before
                distance = (down * down + across * across) + 1e-4
                aside = between - 0.5
                light = (-(aside * aside) + 1) * (length * length / distance)
                gain[x] = min(max(light, 0.0), 1.0) * opacity[image]
            for channel in range(channels):
                line = levels[image, channel, y]
                for x in range(width):
                    below = np.float64(line[x])
                    line[x] = np.float32(below + gain[x] * (255 - below))


@part
def _bend(t):
    return t * t * (3 - 2 * t)


@part
def _side(down_gradients, right_gradients, row, column, down, right, bend):
    """The slopes at the upper and lower corner of one side of a cell, mixed."""
    upper = down_gradients[row, column] * down + right_gradients[row, column] * right
    lower = down_gradients[row + 1, column] * (down - 1) + right_gradients[row + 1, column] * right
    return upper + bend * (lower - upper)


@kernel
def gradient_noise(total, down_gradients, right_gradients, rows, downs, columns, rights, frequency):
    """Add |noise| / frequency to ``total`` (B, H, W): gradients at corners of cells (B, rows, columns).

    For rows of pixels the number of their cell and how far down they lie in it, for columns likewise.
    """
    batch, height, width = total.shape
    for image in range(batch):
        for y in range(height):
            row, down = rows[y], downs[y]
            bend = _bend(down)
            for x in range(width):
                column, right = columns[x], rights[x]
                left_side = _side(down_gradients[image], right_gradients[image], row, column, down, right, bend)
                right_side = _side(
                    down_gradients[image], right_gradients[image], row, column + 1, down, right - 1, bend
                )
                noise = (left_side + _bend(right) * (right_side - left_side)) * 1.5
                total[image, y, x] += abs(noise) / frequency


@kernel
def gray_lines(levels, start, end, counts, gray):
    """Draw anti-aliased lines, the first ``counts`` (B) from ``start`` to ``end`` (B, n, 2), over levels, in place.

    The pixels and opacities are those of `blemish.ops.bresenham`; levels are truncated after each line.
    """
    for image in range(len(levels)):
        for number in range(counts[image]):
            _line(levels[image], start[image, number], end[image, number], gray)


@part
def _line(levels, start, end, gray):
    tall, wide = abs(end[0] - start[0]), abs(end[1] - start[1])
    down, right = 1 if start[0] < end[0] else -1, 1 if start[1] < end[1] else -1
    long, short = max(tall, wide), min(tall, wide)
    length = max(np.sqrt(np.float64(tall * tall + wide * wide)), 1.0)
    twice = max(2 * long, 1)
    for step in range(long + 1):
        aside = (2 * step + 1) * short // twice
        grown = step > 0 and aside > (2 * step - 1) * short // twice
        for move in range(-1, 2):
            if (move == 1 and step == long) or (move == -1 and not grown):
                continue
            share = 1 - np.float64(abs((aside + move) * long - step * short)) / length
            along, across = (step, aside + move) if tall > wide else (aside + move, step)
            row, column = start[0] + down * along, start[1] + right * across
            if share > 0 and 0 <= row < levels.shape[1] and 0 <= column < levels.shape[2]:
                for channel in range(len(levels)):
                    level = levels[channel, row, column] * (1 - share) + gray * share
                    levels[channel, row, column] = np.uint8(level)


@kernel
def fold(u, v, cosines, sines, fade, going, moment, often):
    """Add waves (B, H, W) to a plane, where an image is still ``going``, and make the angles of the next, all in place.

    The sines and cosines themselves are torch's: others would round differently.
    """
    batch, height, width = u.shape
    for image in range(batch):
        fading, moves, then = fade[image], going[image], moment[image]
        for y in range(height):
            across, along, p, q = u[image, y], v[image, y], cosines[image, y], sines[image, y]
            for x in range(width):
                cos, sin = p[x] / fading, q[x] / fading
                right, down = across[x] + (cos - 0.3 * sin), along[x] + (sin + 0.3 * cos)
                right, down = right if moves else across[x], down if moves else along[x]
                across[x], along[x] = right, down
                p[x], q[x] = down * often + then, right * often + then


@kernel
def three_phases(u, v, time, sines, out):
    """Three planes (B, 3, H, W) of angles from two of a folded plane (B, H, W)."""
    batch, height, width = u.shape
    for image in range(batch):
        now, sine = time[image], sines[image]
        for y in range(height):
            across, along = u[image, y], v[image, y]
            red, green, blue = out[image, 0, y], out[image, 1, y], out[image, 2, y]
            for x in range(width):
                red[x] = across[x] - now
                green[x] = (across[x] + along[x] + sine) * 0.5
                blue[x] = along[x] + now


@kernel
def added(levels, gain, noise, strength, out):
    """Levels (B, C, H, W) and noise, each times what an image has of it (B,), clipped and truncated; uint8."""
    batch, channels, height, width = levels.shape
    for image in range(batch):
        kept, times = gain[image], strength[image]
        for channel in range(channels):
            for y in range(height):
                source, field, target = levels[image, channel, y], noise[image, channel, y], out[image, channel, y]
                for x in range(width):
                    value = kept * source[x] + field[x] * times
                    value = value if value > 0.0 else 0.0
                    target[x] = np.uint8(np.int32(value if value < 255.0 else 255.0))


@kernel
def topmost_segments(points, out, start, tops):
    """Draw chains of segments, of points (B, lines, n) in columns and ``tops`` (n,) in rows, one over the other.

    A pixel of ``out`` (B, H, W) gets the number of the last segment on it, from 1; see laion's vertical lines.
    """
    images, lines, count = points.shape
    height, width = out.shape[1:]
    for image in range(images):
        picture, number = out[image], 0
        for line in range(lines):
            column, row = start[line], tops[0]
            for point in range(count):
                number += 1
                across, down = points[image, line, point] - column, tops[point] - row
                along, aside, side = max(abs(across), down), min(abs(across), down), 1 if across > 0 else -1
                for step in range(along + 1):
                    moved = (2 * aside * step + along) // (2 * max(along, 1))
                    right, below = (step, moved) if abs(across) > down else (moved, step)
                    x, y = column + side * right, row + below
                    if 0 <= x < width and y < height:
                        picture[y, x] = number
                column, row = points[image, line, point], tops[point]
