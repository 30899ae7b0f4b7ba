"""Diamond-square fields, as `blemish.ops.compiled.clouds` makes them, and fog made of them."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.fused.levels import EXACT, here, level, unit
from blemish.ops.fused.on_device import on_its_device, sent

_LANES = 256


@triton.jit
def _centre(field, wobble, scale, y, x, size, inside):
    """The middle of the square of old points that begins at (y, x), all of which repeat beyond the border."""
    below, after = (y + 1) % size, (x + 1) % size
    left = tl.load(field + y * size + x, inside, other=0.0) + tl.load(field + below * size + x, inside, other=0.0)
    right = tl.load(field + y * size + after, inside, other=0.0)
    right += tl.load(field + below * size + after, inside, other=0.0)
    return (left + right) * 0.25 + scale * tl.load(wobble + y * size + x, inside, other=0.0)


@triton.jit(do_not_specialize=["number", "start", "size", "parts"])
def _finer_kernel(field, out, wobble, noise, room, levels, number, start, size, parts, lanes: tl.constexpr):
    """The map at twice the resolution: each old point makes itself, two diamonds and the centre of a square."""
    image, point, inside = here(size * size, parts, lanes)
    y = point // size
    x = point - y * size
    scale = tl.load(noise + image * levels + number)
    field += image.to(tl.int64) * size * size
    wobble += image.to(tl.int64) * room + start
    above, before = (y + size - 1) % size, (x + size - 1) % size
    own = tl.load(field + point, inside, other=0.0)
    middle = _centre(field, wobble, scale, y, x, size, inside)
    both = middle + own
    after = tl.load(field + y * size + (x + 1) % size, inside, other=0.0)
    below = tl.load(field + (y + 1) % size * size + x, inside, other=0.0)
    count = size * size
    first = scale * tl.load(wobble + count + point, inside, other=0.0)
    second = scale * tl.load(wobble + 2 * count + point, inside, other=0.0)
    on_row = ((_centre(field, wobble, scale, above, x, size, inside) + after) + both) * 0.25 + first
    on_column = ((_centre(field, wobble, scale, y, before, size, inside) + below) + both) * 0.25 + second
    target = out + image.to(tl.int64) * 4 * count + 4 * y * size + 2 * x
    tl.store(target, own, inside)
    tl.store(target + 1, on_row, inside)
    tl.store(target + 2 * size, on_column, inside)
    tl.store(target + 2 * size + 1, middle, inside)


@triton.jit
def _extent_kernel(field, levels, thickness, out, side, values, lanes: tl.constexpr):
    """The least value of an image's map, its span, and what the brightest level allows."""
    image = tl.program_id(0)
    field += image.to(tl.int64) * side * side
    levels += image.to(tl.int64) * values
    lowest = tl.full((lanes,), float("inf"), tl.float32)
    highest = tl.full((lanes,), float("-inf"), tl.float32)
    for start in range(0, side * side, lanes):
        index = start + tl.arange(0, lanes)
        lowest = tl.minimum(lowest, tl.load(field + index, index < side * side, other=float("inf")))
        highest = tl.maximum(highest, tl.load(field + index, index < side * side, other=float("-inf")))
    most = tl.zeros((lanes,), tl.int32)
    for start in range(0, values, lanes):
        index = start + tl.arange(0, lanes)
        most = tl.maximum(most, tl.load(levels + index, index < values, other=0).to(tl.int32))
    low = tl.min(lowest, axis=0)
    brightest = unit(tl.max(most, axis=0))
    tl.store(out + 3 * image, low)
    tl.store(out + 3 * image + 1, tl.max(highest, axis=0) - low)
    tl.store(out + 3 * image + 2, tl.div_rn(brightest, brightest + tl.load(thickness + image)))


@triton.jit
def _fog_kernel(levels, out, field, extents, thickness, side, size, width, parts, planes, lanes: tl.constexpr):
    image, pixel, inside = here(size, parts, lanes)
    y = pixel // width
    low, span = tl.load(extents + 3 * image), tl.load(extents + 3 * image + 1)
    gain, thick = tl.load(extents + 3 * image + 2), tl.load(thickness + image)
    made = tl.load(field + image.to(tl.int64) * side * side + y * side + pixel - y * width, inside, other=0.0)
    layer = tl.div_rn(made - low, span) * thick
    first = image.to(tl.int64) * size * planes + pixel
    for plane in range(planes):
        value = unit(tl.load(levels + first + plane * size, inside, other=0))
        tl.store(out + first + plane * size, level((value + layer) * gain), inside)


@on_its_device
def fog(levels: Tensor, out: Tensor, wobble: Tensor, noise: NDArray[Any], thickness: NDArray[Any]) -> None:
    """(Level + map · thickness) · brightest / (brightest + thickness); images (B, C, H, W) uint8.

    ``wobble`` holds the uniform values (B, all of all levels), float32 on the device, ``noise`` is (B, levels).
    """
    batch, planes, height, width = levels.shape
    scales, thick = sent(levels, noise, thickness)
    field = torch.zeros(batch, dtype=torch.float32, device=levels.device)
    size, start = 1, 0
    for number in range(noise.shape[1]):
        finer = torch.empty(batch * 4 * size * size, dtype=torch.float32, device=levels.device)
        parts = triton.cdiv(size * size, _LANES)
        shape = (wobble.shape[1], noise.shape[1], number, start, size, parts)
        _finer_kernel[(batch * parts,)](field, finer, wobble, scales, *shape, lanes=_LANES, **EXACT)
        field, start, size = finer, start + 3 * size * size, 2 * size
    extents = torch.empty(batch, 3, dtype=torch.float32, device=levels.device)
    values = planes * height * width
    _extent_kernel[(batch,)](field, levels, thick, extents, size, values, lanes=2048, num_warps=8, **EXACT)
    parts = triton.cdiv(height * width, _LANES)
    settings = (field, extents, thick, size, height * width, width, parts, planes)
    _fog_kernel[(batch * parts,)](levels, out, *settings, lanes=_LANES, **EXACT)
