"""Blurs from levels to levels: Gaussians, glass, and kernels of few different weights.

The bits are those of `blemish.ops.compiled.blurs`. Borders: 0 repeats the edge, 1 mirrors the image with its edge,
2 without it. Radii are smaller than the sides.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.fused.levels import EXACT, here, level, unit
from blemish.ops.fused.on_device import kept, on_its_device, sent
from blemish.ops.fused.words import one_rank
from blemish.ops.transfer import to_device

_LANES = 512


@triton.jit
def _within(index, size, border: tl.constexpr):
    if border == 0:
        index = tl.minimum(tl.maximum(index, 0), size - 1)
    else:
        edge: tl.constexpr = 1 if border == 1 else 0
        index = tl.where(index < 0, -edge - index, index)
        index = tl.where(index >= size, 2 * size - 2 + edge - index, index)
    return index


@triton.jit
def _value(at, inside, levels: tl.constexpr):
    value = tl.load(at, inside, other=0)
    if levels:
        value = unit(value)
    return value


@triton.jit
def _put(at, value, inside, levels: tl.constexpr):
    if levels:
        tl.store(at, level(value), inside)
    else:
        tl.store(at, value, inside)


@triton.jit
def _pairs_kernel(
    images, out, weights, radii, room, size, width, parts,
    planes: tl.constexpr, down: tl.constexpr, border: tl.constexpr,
    from_levels: tl.constexpr, to_levels: tl.constexpr, lanes: tl.constexpr,
):  # fmt: skip
    """A symmetric filter along columns or rows; up to three planes share the places."""
    image, pixel, inside = here(size, parts, lanes)
    images += image.to(tl.int64) * size * planes
    out += image.to(tl.int64) * size * planes
    weight = weights + image * room
    y = pixel // width
    x = pixel - y * width
    share = tl.load(weight)
    first = _value(images + pixel, inside, from_levels) * share
    second, third = first, first
    if planes > 1:
        second = _value(images + size + pixel, inside, from_levels) * share
    if planes > 2:
        third = _value(images + 2 * size + pixel, inside, from_levels) * share
    for step in range(1, tl.load(radii + image) + 1):
        if down:
            before = _within(y - step, size // width, border) * width + x
            after = _within(y + step, size // width, border) * width + x
        else:
            before = y * width + _within(x - step, width, border)
            after = y * width + _within(x + step, width, border)
        share = tl.load(weight + step)
        both = _value(images + before, inside, from_levels) + _value(images + after, inside, from_levels)
        first = tl.fma(both, share, first)
        if planes > 1:
            one = _value(images + size + before, inside, from_levels)
            second = tl.fma(one + _value(images + size + after, inside, from_levels), share, second)
        if planes > 2:
            one = _value(images + 2 * size + before, inside, from_levels)
            third = tl.fma(one + _value(images + 2 * size + after, inside, from_levels), share, third)
    _put(out + pixel, first, inside, to_levels)
    if planes > 1:
        _put(out + size + pixel, second, inside, to_levels)
    if planes > 2:
        _put(out + 2 * size + pixel, third, inside, to_levels)


def filtered(images: Tensor, out: Tensor, border: int, weights: Tensor, radii: Tensor) -> None:
    """Filter columns, then rows, of (B, up to 3, H, W), levels or float32: weights (B, room) from the centre on."""
    batch, planes, height, width = images.shape
    between = torch.empty(images.shape, dtype=torch.float32, device=images.device)
    parts = triton.cdiv(height * width, _LANES)
    shape = (weights.shape[1], height * width, width, parts)
    for source, target, down in ((images, between, True), (between, out, False)):
        kinds = {"from_levels": source.dtype == torch.uint8, "to_levels": target.dtype == torch.uint8}
        settings = {"planes": planes, "down": down, "border": border, "lanes": _LANES, **kinds, **EXACT}
        _pairs_kernel[(batch * parts,)](source, target, weights, radii, *shape, **settings)


@on_its_device
def gaussian_levels(levels: Tensor, out: Tensor, weights: NDArray[Any], radii: NDArray[Any]) -> None:
    """A Gaussian blur of uint8 images (B, C, H, W), edges repeated: weights (B, room) from the centre, radii (B,)."""
    filtered(levels, out, 0, *sent(levels, weights, radii))


@on_its_device
def gaussian(images: Tensor, weights: NDArray[Any], radii: NDArray[Any], border: int) -> Tensor:
    """The same of float32 images, which stay float32, with any border."""
    images = images.contiguous()
    out = torch.empty_like(images)
    filtered(images, out, border, *sent(images, weights, radii))
    return out


@triton.jit
def _faint_kernel(levels, out, weights, radii, faint, room, channels, height, width, parts, lanes: tl.constexpr):
    """In double precision, along columns and then rows, for images that are blurred faintly."""
    plane, pixel, inside = here(height * width, parts, lanes)
    image = plane // channels
    inside = inside & (tl.load(faint + image) != 0)
    weight = weights + image * room
    radius = tl.load(radii + image)
    first = plane.to(tl.int64) * height * width
    y = pixel // width
    x = pixel - y * width
    total = tl.zeros((lanes,), tl.float64)
    for step in range(radius + 1):
        sides = tl.zeros((lanes,), tl.float64)
        for side in range(2):
            column = tl.minimum(tl.maximum(x + (2 * side - 1) * step, 0), width - 1)
            own = tl.load(levels + first + y * width + column, inside, other=0).to(tl.float64)
            value = tl.load(weight) * own
            for other in range(1, radius + 1):
                upper = tl.maximum(y - other, 0) * width + column
                lower = tl.minimum(y + other, height - 1) * width + column
                pair = tl.load(levels + first + upper, inside, other=0).to(tl.float64)
                pair += tl.load(levels + first + lower, inside, other=0).to(tl.float64)
                value += tl.load(weight + other) * pair
            sides = tl.where((step == 0) & (side == 1), sides, sides + value)
        total += tl.load(weight + step) * sides
    tl.store(out + first + pixel, tl.floor(total + 1e-9).to(tl.int32).to(tl.uint8), inside)


@triton.jit(do_not_specialize=["batch"])
def _shuffle_kernel(levels, out, keys, reaches, passes, batch, quarter, height, width, parts,
                    planes: tl.constexpr, lanes: tl.constexpr):  # fmt: skip
    """Follow each pixel back to where its value comes from: the moves are made on the way."""
    size = height * width
    image, pixel, inside = here(size, parts, lanes)
    reach = tl.load(reaches + image)
    own = tl.load(passes + image)
    side = 2 * reach
    at = tl.where(inside, pixel, 0)
    # The last pass comes first: where a pixel's value stood before it, and before that.
    for back in range(own):
        stream = keys + (own - 1 - back) * batch * 4
        going = inside
        while tl.max(going.to(tl.int32), axis=0) > 0:
            row = at // width
            column = at - row * width
            visited = (row > reach) & (row <= height - reach) & (column > reach) & (column <= width - reach)
            asked = going & visited
            rank = one_rank(stream, image, at, quarter)
            cell = ((2 * rank + 1) * (side * side)) >> 17
            down = cell // side
            moved = (down - reach) * width + cell - down * side - reach
            at = tl.where(asked, at + moved, at)
            # A source further on was visited before, so its own source counts.
            going = asked & (moved > 0)
    first = image.to(tl.int64) * size * planes
    for plane in range(planes):
        tl.store(
            out + first + plane * size + pixel, tl.load(levels + first + plane * size + at, inside, other=0), inside
        )


@on_its_device
def glass(
    levels: Tensor,
    out: Tensor,
    weights: NDArray[Any],
    exact: NDArray[Any],
    radii: NDArray[Any],
    faint: NDArray[Any],
    keys: NDArray[Any],
    reaches: NDArray[Any],
    passes: NDArray[Any],
) -> None:
    """Blur, truncate, move pixels about, blur again: see `blemish.ops.compiled.blurs.glass`."""
    batch, planes, height, width = levels.shape
    steering = (weights, radii, faint, keys.transpose(0, 2, 1), reaches, passes)
    shares, spread, faintly, streams, reach, times = sent(levels, *steering)
    blurred, moved = torch.empty_like(levels), torch.empty_like(levels)
    filtered(levels, blurred, 0, shares, spread)
    parts = triton.cdiv(height * width, 256)
    if faint.any():
        fine = to_device(torch.from_numpy(exact), levels.device)
        settings = (fine, spread, faintly, exact.shape[1], planes, height, width, parts)
        _faint_kernel[(batch * planes * parts,)](levels, blurred, *settings, lanes=256, **EXACT)
    shape = (batch, -(-height * width // 8), height, width, parts)
    _shuffle_kernel[(batch * parts,)](blurred, moved, streams, reach, times, *shape, planes=planes, lanes=256)
    filtered(moved, out, 0, shares, spread)


@triton.jit
def _pack_kernel(levels, packed, rows, columns, size, width, tall, wide, parts, planes: tl.constexpr,
                 lanes: tl.constexpr):  # fmt: skip
    """Images with margins, the planes of a pixel in one number, 16 bits for each."""
    image, pixel, inside = here(tall * wide, parts, lanes)
    y = pixel // wide
    column = tl.load(columns + pixel - y * wide, inside, other=0)
    source = levels + image.to(tl.int64) * size * planes + tl.load(rows + y, inside, other=0) * width + column
    value = tl.load(source, inside, other=0).to(tl.int64)
    if planes > 1:
        value += tl.load(source + size, inside, other=0).to(tl.int64) << 16
        value += tl.load(source + 2 * size, inside, other=0).to(tl.int64) << 32
    tl.store(packed + image.to(tl.int64) * tall * wide + pixel, value, inside)


@triton.jit
def _scaled(total):
    return level(total * 0.00392156862745098)


@triton.jit
def _classes_kernel(
    packed, out, pairs, taps, starts, weights, count, size, width, tall, wide, parts,
    planes: tl.constexpr, lanes: tl.constexpr,
):  # fmt: skip
    image, pixel, inside = here(size, parts, lanes)
    y = pixel // width
    corner = packed + image.to(tl.int64) * tall * wide + y * wide + pixel - y * width
    red = tl.zeros((lanes,), tl.float32)
    green = tl.zeros((lanes,), tl.float32)
    blue = tl.zeros((lanes,), tl.float32)
    for number in range(count):
        total = tl.zeros((lanes,), tl.int64)
        for tap in range(tl.load(starts + number), tl.load(starts + number + 1)):
            pair = pairs + 2 * tl.load(taps + 2 * tap)
            column = tl.load(taps + 2 * tap + 1)
            total += tl.load(corner + tl.load(pair) * wide + column, inside, other=0)
            second = tl.load(pair + 1)
            total += tl.load(corner + second * wide + column, inside & (second >= 0), other=0)
        share = tl.load(weights + number)
        red = tl.fma((total & 0xFFFF).to(tl.int32).to(tl.float32), share, red)
        if planes > 1:
            green = tl.fma(((total >> 16) & 0xFFFF).to(tl.int32).to(tl.float32), share, green)
            blue = tl.fma(((total >> 32) & 0xFFFF).to(tl.int32).to(tl.float32), share, blue)
    target = out + image.to(tl.int64) * size * planes + pixel
    tl.store(target, _scaled(red), inside)
    if planes > 1:
        tl.store(target + size, _scaled(green), inside)
        tl.store(target + 2 * size, _scaled(blue), inside)


@on_its_device
def weighted_classes(
    levels: Tensor,
    out: Tensor,
    rows: NDArray[Any],
    columns: NDArray[Any],
    pairs: NDArray[Any],
    taps: NDArray[Any],
    starts: NDArray[Any],
    weights: NDArray[Any],
) -> None:
    """Σ weight · Σ levels over the taps of each class; see `blemish.ops.compiled.blurs.weighted_classes`."""
    batch, planes, height, width = levels.shape
    tall, wide, size = len(rows), len(columns), height * width
    packed = torch.empty((batch, tall, wide), dtype=torch.int64, device=levels.device)
    parts = triton.cdiv(tall * wide, _LANES)
    margins = (kept(levels, rows), kept(levels, columns), size, width, tall, wide, parts)
    _pack_kernel[(batch * parts,)](levels, packed, *margins, planes=planes, lanes=_LANES)
    parts = triton.cdiv(size, 256)
    classes = [kept(levels, array) for array in (pairs, taps, starts, weights)]
    shape = (len(weights), size, width, tall, wide, parts)
    _classes_kernel[(batch * parts,)](packed, out, *classes, *shape, planes=planes, lanes=256, **EXACT)
