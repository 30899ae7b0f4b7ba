"""Drops of water and splashes of mud, from levels to levels: images (B, C, H, W) uint8, settings (B,)."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.blurs import filtered
from blemish.ops.compiled.drops import drop_room, light_on_drops
from blemish.ops.compiled.flat import copy
from blemish.ops.compiled.jit import fma, kernel, part
from blemish.ops.compiled.levels import level, unit

_F = np.float32
_ZERO, _ONE = np.float32(0), np.float32(1)


@part
def _blurred(field, weights, radius, plane, out):
    for y in range(len(field)):
        copy(field[y], plane[0, y])
    filtered(plane, weights, radius, 0, out)


@kernel
def water(levels, out, fields, weights, radii, mean, std, threshold, low, high, colour, strength):
    """Add ``colour`` (C,) times ``strength`` in proportion to how thick water is, times the light on its drops.

    How thick it is comes from normal values (B, H, W) that are blurred, scaled and shifted; below the threshold it is
    dry. ``low`` and ``high`` are Canny's.
    """
    batch, channels, height, width = levels.shape
    plane, smooth = np.empty((1, height, width), np.float32), np.empty((1, height, width), np.float32)
    layer, light, room = np.empty((height, width), np.int16), smooth[0], drop_room(height, width)
    for image in range(batch):
        _blurred(fields[image], weights[image], radii[image], plane, smooth)
        middle, spread, least = _F(255 * mean[image]), _F(255 * std[image]), _F(255 * threshold[image])
        for y in range(height):
            thick, own = smooth[0, y], layer[y]
            for x in range(width):
                value = fma(thick[x], spread, middle)
                # Beyond 255 the reference's 8-bit integers wrap around.
                own[x] = np.int16(np.int32(value) & np.int32(255)) if value >= least else np.int16(0)
        light_on_drops(layer, low, high, room, light)
        brightest = _ONE
        for y in range(height):
            brightest = max(brightest, _shone(light[y], layer[y]))
        for channel in range(channels):
            share = colour[channel] * _F(strength[image]) / brightest
            for y in range(height):
                source, target, shine = levels[image, channel, y], out[image, channel, y], light[y]
                for x in range(width):
                    target[x] = level(fma(shine[x], share, unit(source[x])))


@part
def _shone(light, thickness):
    """Light times thickness, in place of the light; the most of it."""
    most = _ZERO
    for x in range(len(light)):
        light[x] *= _F(thickness[x])
        most = light[x] if light[x] > most else most
    return most


@kernel
def mud(levels, out, fields, weights, radii, threshold, outlines, reaches, thin, colour):
    """Blend in ``colour`` (C,) where blurred normal values (B, H, W) exceed a threshold, and a blur of that ``thin``.

    ``outlines`` and ``reaches`` are the weights and radii of the second blur.
    """
    batch, channels, height, width = levels.shape
    plane, smooth = np.empty((1, height, width), np.float32), np.empty((1, height, width), np.float32)
    for image in range(batch):
        _blurred(fields[image], weights[image], radii[image], plane, smooth)
        for y in range(height):
            thick, cover = smooth[0, y], plane[0, y]
            for x in range(width):
                cover[x] = _ONE if thick[x] > threshold[image] else _ZERO
        filtered(plane, outlines[image], reaches[image], 0, smooth)
        for channel in range(channels):
            brown = colour[channel]
            for y in range(height):
                source, target, cover = levels[image, channel, y], out[image, channel, y], smooth[0, y]
                for x in range(width):
                    value, share = unit(source[x]), cover[x] if cover[x] >= thin else _ZERO
                    target[x] = level(fma(share, brown - value, value))
