"""Weighted sums of shifted copies, the mean of enlargements, and snow, which is made of both: levels to levels.

The bits are those of `blemish.ops.compiled.lines`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.fused.levels import EXACT, here, level, luminance, unit
from blemish.ops.fused.on_device import kept, on_its_device, sent

_LANES = 256


@triton.jit
def _line_kernel(levels, out, shifts, weights, taps, height, width, parts, colour: tl.constexpr, lanes: tl.constexpr):
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    first = image.to(tl.int64) * size * (3 if colour else 1)
    source = levels + first
    y = pixel // width
    x = pixel - y * width
    red = tl.zeros((lanes,), tl.float32)
    green = tl.zeros((lanes,), tl.float32)
    blue = tl.zeros((lanes,), tl.float32)
    for tap in range(taps):
        entry = image * taps + tap
        share = tl.load(weights + entry)
        row = tl.minimum(tl.maximum(y + tl.load(shifts + 2 * entry), 0), height - 1)
        column = tl.minimum(tl.maximum(x + tl.load(shifts + 2 * entry + 1), 0), width - 1)
        at = source + row * width + column
        red = tl.fma(unit(tl.load(at, inside, other=0)), share, red)
        if colour:
            green = tl.fma(unit(tl.load(at + size, inside, other=0)), share, green)
            blue = tl.fma(unit(tl.load(at + 2 * size, inside, other=0)), share, blue)
    target = out + first + pixel
    tl.store(target, level(red), inside)
    if colour:
        tl.store(target + size, level(green), inside)
        tl.store(target + 2 * size, level(blue), inside)


def _merged(shifts: NDArray[Any], weights: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Taps in a row that fall on one pixel as one, added up in double precision; the others move up, zeros follow."""
    new = np.ones(weights.shape, bool)
    new[:, 1:] = (shifts[:, 1:] != shifts[:, :-1]).any(2)
    slot = np.cumsum(new, axis=1) - 1
    images = np.broadcast_to(np.arange(len(weights))[:, None], weights.shape)
    shares = np.zeros(weights.shape)
    np.add.at(shares, (images, slot), weights)
    moves = np.zeros_like(shifts)
    moves[images, slot] = shifts
    most = int(slot.max()) + 1
    return moves[:, :most], shares[:, :most]


def _smeared(levels: Tensor, out: Tensor, shifts: Tensor, weights: Tensor) -> None:
    batch, channels, height, width = levels.shape
    parts = triton.cdiv(height * width, _LANES)
    shape = (weights.shape[1], height, width, parts)
    settings = {"colour": channels == 3, "lanes": _LANES, **EXACT}
    _line_kernel[(batch * parts,)](levels, out, shifts, weights, *shape, **settings)


@on_its_device
def line_levels(levels: Tensor, out: Tensor, shifts: NDArray[Any], weights: NDArray[Any]) -> None:
    """Sums over taps, edges repeated: images (B, C, H, W) uint8, shifts (B, taps, 2), weights (B, taps).

    Of the taps of an image only those in a row may fall on one pixel, as of a line.
    """
    _smeared(levels, out, *sent(levels, *_merged(shifts, weights)))


@triton.jit
def _mix(first, second, share):
    """As torch.lerp, which starts from the nearer one."""
    near = share < 0.5
    return tl.fma(tl.where(near, share, share - 1.0), second - first, tl.where(near, first, second))


@triton.jit
def _between(corner, below, beside, down, right, inside):
    first = _mix(unit(tl.load(corner, inside, other=0)), unit(tl.load(corner + below, inside, other=0)), down)
    corner += beside
    second = _mix(unit(tl.load(corner, inside, other=0)), unit(tl.load(corner + below, inside, other=0)), down)
    return _mix(first, second, right)


@triton.jit
def _zoom_kernel(
    levels, out, rows, row_shares, columns, column_shares, factors, height, width, parts,
    colour: tl.constexpr, lanes: tl.constexpr,
):  # fmt: skip
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    first = image.to(tl.int64) * size * (3 if colour else 1)
    levels += first
    y = pixel // width
    x = pixel - y * width
    red = unit(tl.load(levels + pixel, inside, other=0))
    green, blue = red, red
    if colour:
        green = unit(tl.load(levels + size + pixel, inside, other=0))
        blue = unit(tl.load(levels + 2 * size + pixel, inside, other=0))
    for factor in range(factors):
        top = tl.load(rows + factor * height + y, inside, other=0)
        down = tl.load(row_shares + factor * height + y, inside, other=0.0)
        left = tl.load(columns + factor * width + x, inside, other=0)
        right = tl.load(column_shares + factor * width + x, inside, other=0.0)
        corner = levels + top * width + left
        below = tl.where(top + 1 < height, width, 0)
        beside = tl.where(left + 1 < width, 1, 0)
        red += _between(corner, below, beside, down, right, inside)
        if colour:
            green += _between(corner + size, below, beside, down, right, inside)
            blue += _between(corner + 2 * size, below, beside, down, right, inside)
    count = factors + 1.0
    target = out + first + pixel
    tl.store(target, level(tl.div_rn(red, count)), inside)
    if colour:
        tl.store(target + size, level(tl.div_rn(green, count)), inside)
        tl.store(target + 2 * size, level(tl.div_rn(blue, count)), inside)


@on_its_device
def zoom_levels(
    levels: Tensor,
    out: Tensor,
    rows: NDArray[Any],
    downs: NDArray[Any],
    columns: NDArray[Any],
    rights: NDArray[Any],
) -> None:
    """The mean of images (B, C, H, W) and enlargements, given by the first of two rows and the second's share."""
    batch, channels, height, width = levels.shape
    places = [kept(levels, array) for array in (rows, downs, columns, rights)]
    parts = triton.cdiv(height * width, _LANES)
    shape = (len(rows), height, width, parts)
    _zoom_kernel[(batch * parts,)](levels, out, *places, *shape, colour=channels == 3, lanes=_LANES, **EXACT)


@triton.jit
def _specks_kernel(
    field, out, rows, row_shares, columns, column_shares, mean, std, threshold, height, width, parts,
    lanes: tl.constexpr,
):  # fmt: skip
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    times, plus = tl.load(std + image), tl.load(mean + image)
    y = pixel // width
    x = pixel - y * width
    top = tl.load(rows + y, inside, other=0)
    down = tl.load(row_shares + y, inside, other=0.0)
    left = tl.load(columns + x, inside, other=0)
    right = tl.load(column_shares + x, inside, other=0.0)
    corner = field + image.to(tl.int64) * size + top * width + left
    below = tl.where(top + 1 < height, width, 0)
    beside = tl.where(left + 1 < width, 1, 0)
    one = tl.load(corner, inside, other=0.0) * times + plus
    two = tl.load(corner + below, inside, other=0.0) * times + plus
    three = tl.load(corner + beside, inside, other=0.0) * times + plus
    four = tl.load(corner + below + beside, inside, other=0.0) * times + plus
    speck = _mix(_mix(one, two, down), _mix(three, four, down), right)
    speck = tl.where(speck >= tl.load(threshold + image), speck, 0.0)
    tl.store(out + image.to(tl.int64) * size + pixel, level(speck), inside)


@triton.jit
def _cover(value, light, both, weight):
    return level(tl.fma(tl.maximum(value, light), 1.0 - weight, value * weight) + both)


@triton.jit
def _cover_kernel(levels, out, layer, weights, size, parts, colour: tl.constexpr, lanes: tl.constexpr):
    image, pixel, inside = here(size, parts, lanes)
    weight = tl.load(weights + image)
    layer += image.to(tl.int64) * size
    both = unit(tl.load(layer + pixel, inside, other=0)) + unit(tl.load(layer + size - 1 - pixel, inside, other=0))
    first = image.to(tl.int64) * size * (3 if colour else 1)
    source, target = levels + first + pixel, out + first + pixel
    red = unit(tl.load(source, inside, other=0))
    if colour:
        green = unit(tl.load(source + size, inside, other=0))
        blue = unit(tl.load(source + 2 * size, inside, other=0))
        light = luminance(red, green, blue) * 1.5 + 0.5
        tl.store(target, _cover(red, light, both, weight), inside)
        tl.store(target + size, _cover(green, light, both, weight), inside)
        tl.store(target + 2 * size, _cover(blue, light, both, weight), inside)
    else:
        tl.store(target, _cover(red, red * 1.5 + 0.5, both, weight), inside)


@on_its_device
def snow(
    levels: Tensor,
    out: Tensor,
    field: Tensor,
    mean: NDArray[Any],
    std: NDArray[Any],
    threshold: NDArray[Any],
    weight: NDArray[Any],
    rows: NDArray[Any],
    downs: NDArray[Any],
    columns: NDArray[Any],
    rights: NDArray[Any],
    shifts: NDArray[Any],
    weights: NDArray[Any],
) -> None:
    """Enlarged specks of a field (B, H, W), smeared along a line, over a whitened scene."""
    batch, channels, height, width = levels.shape
    settings = (mean, std, threshold, weight, *_merged(shifts, weights))
    middle, spread, least, share, moves, shares = sent(levels, *settings)
    places = [kept(levels, array) for array in (rows, downs, columns, rights)]
    specks, layer = torch.empty((2, batch, 1, height, width), dtype=torch.uint8, device=levels.device)
    size = height * width
    parts = triton.cdiv(size, 512)
    grid, shape = (batch * parts,), (height, width, parts)
    _specks_kernel[grid](field, specks, *places, middle, spread, least, *shape, lanes=512, **EXACT)
    _smeared(specks, layer, moves, shares)
    _cover_kernel[grid](levels, out, layer, share, size, parts, colour=channels == 3, lanes=512, **EXACT)
