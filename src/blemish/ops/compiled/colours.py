"""Light and colour, pixel by pixel: levels (B, C, pixels) uint8 to levels, settings (B,) float64."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import fma, part, shareable
from blemish.ops.compiled.levels import level, unit

_F = np.float32
_ZERO, _ONE = np.float32(0), np.float32(1)

# Levels in [0, 1] are multiples of 2⁻³²: sums of 2¹⁴ of their high and low halves fit in 32 bits.
_HALF = np.float32(2.0**16)
_STRETCH = 2**14


@part
def _stretch(planes, image, start):
    """A part of three planes. In loops over parts, not over images, the compiler sees that planes do not overlap."""
    red = planes[image, 0, start : start + _STRETCH]
    return red, planes[image, 1, start : start + _STRETCH], planes[image, 2, start : start + _STRETCH]


@part
def _clipped(value):
    value = value if value > _ZERO else _ZERO
    return value if value < _ONE else _ONE


@part
def luminance(red, green, blue):
    """ITU-R BT.601 luminance, as `blemish.ops.colour` sums it up."""
    return fma(blue, _F(0.114), fma(green, _F(0.587), red * _F(0.299)))


@part
def _raised(value, shift):
    """What a pixel of that value is multiplied by, and what is added to it."""
    target = _clipped(value + shift)
    black = _ONE if value <= _ZERO else _ZERO
    return target / (value + black), target * black


@shareable()
def brighten(levels, out, shift):
    """Raise HSV's value."""
    for image in range(len(levels)):
        more = _F(shift[image])
        if levels.shape[1] == 1:
            gray, result = levels[image, 0], out[image, 0]
            for i in range(len(gray)):
                value = unit(gray[i])
                gain, base = _raised(value, more)
                result[i] = level(value * gain + base)
            continue
        for start in range(0, levels.shape[2], _STRETCH):
            red, green, blue = _stretch(levels, image, start)
            red_out, green_out, blue_out = _stretch(out, image, start)
            for i in range(len(red)):
                gain, base = _raised(unit(max(red[i], green[i], blue[i])), more)
                red_out[i] = level(unit(red[i]) * gain + base)
                green_out[i] = level(unit(green[i]) * gain + base)
                blue_out[i] = level(unit(blue[i]) * gain + base)


@shareable()
def saturate(levels, out, scale, shift):
    """Replace HSV's saturation S by S · scale + shift; of three channels."""
    for image in range(len(levels)):
        times, plus = _F(scale[image]), _F(shift[image])
        for start in range(0, levels.shape[2], _STRETCH):
            red, green, blue = _stretch(levels, image, start)
            red_out, green_out, blue_out = _stretch(out, image, start)
            for i in range(len(red)):
                value = unit(max(red[i], green[i], blue[i]))
                spread = value - unit(min(red[i], green[i], blue[i]))
                gray = _ONE if spread <= _ZERO else _ZERO
                saturation = spread / (value + (_ONE if value <= _ZERO else _ZERO))
                wanted = _clipped(saturation * times + plus) * value
                ratio = wanted / (spread + gray)
                reddened = wanted * gray
                red_out[i] = level(value - (value - unit(red[i])) * ratio)
                green_out[i] = level(value - (value - unit(green[i])) * ratio - reddened)
                blue_out[i] = level(value - (value - unit(blue[i])) * ratio - reddened)


@shareable()
def flatten(levels, out, factor):
    """Pull every value towards the mean of its channel."""
    for image in range(len(levels)):
        kept = _F(factor[image])
        for channel in range(levels.shape[1]):
            source, target = levels[image, channel], out[image, channel]
            offset = _F(_mean(source)) * (_ONE - kept)
            for i in range(len(source)):
                target[i] = level(unit(source[i]) * kept + offset)


@part
def _mean(levels):
    """The mean in [0, 1], from an exact sum."""
    total = 0
    for start in range(0, len(levels), _STRETCH):
        part = levels[start : start + _STRETCH]
        high, low = np.int32(0), np.int32(0)
        for i in range(len(part)):
            scaled = unit(part[i]) * _HALF
            whole = np.int32(scaled)
            high += whole
            low += np.int32((scaled - _F(whole)) * _HALF)
        total += np.int64(high) * 65536 + np.int64(low)
    return total / 2.0**32 / len(levels)


@shareable("sheets")
def blend(levels, out, sheets, chosen, top, left, image_weight, sheet_weight):
    """Level · weight + crop of a texture · weight; images (B, C, H, W), textures (N, 3, h, w) uint8, places int64."""
    batch, channels, height, width = levels.shape
    for image in range(batch):
        weight, other = _F(image_weight[image]), _F(sheet_weight[image])
        first, last = left[image], left[image] + width
        for row in range(height):
            texture = sheets[chosen[image], :, top[image] + row]
            if channels == 1:
                source, target = levels[image, 0, row], out[image, 0, row]
                red, green, blue = texture[0, first:last], texture[1, first:last], texture[2, first:last]
                for i in range(width):
                    light = luminance(unit(red[i]), unit(green[i]), unit(blue[i]))
                    target[i] = level(fma(light, other, unit(source[i]) * weight))
                continue
            for channel in range(channels):
                source, target = levels[image, channel, row], out[image, channel, row]
                crop = texture[channel, first:last]
                for i in range(width):
                    target[i] = level(fma(unit(crop[i]), other, unit(source[i]) * weight))
