"""Light and colour, pixel by pixel: levels (B, C, pixels) uint8 to levels, settings (B,).

The bits are those of `blemish.ops.compiled.colours`, and of the plain operations on a CPU.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.fused.levels import EXACT, here, level, luminance, unit
from blemish.ops.fused.on_device import on_its_device, sent

_LANES = 512


@triton.jit
def _clipped(value):
    return tl.minimum(tl.maximum(value, 0.0), 1.0)


@triton.jit
def _brighten_kernel(levels, out, shift, size, parts, colour: tl.constexpr, lanes: tl.constexpr):
    image, pixel, inside = here(size, parts, lanes)
    more = tl.load(shift + image)
    first = image.to(tl.int64) * size * (3 if colour else 1)
    source, target = levels + first + pixel, out + first + pixel
    red = unit(tl.load(source, inside, other=0))
    green, blue = red, red
    if colour:
        green = unit(tl.load(source + size, inside, other=0))
        blue = unit(tl.load(source + 2 * size, inside, other=0))
    value = tl.maximum(tl.maximum(red, green), blue)
    raised = _clipped(value + more)
    black = tl.where(value <= 0.0, 1.0, 0.0)
    gain, base = tl.div_rn(raised, value + black), raised * black
    tl.store(target, level(red * gain + base), inside)
    if colour:
        tl.store(target + size, level(green * gain + base), inside)
        tl.store(target + 2 * size, level(blue * gain + base), inside)


def _launch(kernel: Any, levels: Tensor, out: Tensor, *settings: Tensor) -> None:
    batch, channels, size = levels.shape
    parts = triton.cdiv(size, _LANES)
    kernel[(batch * parts,)](levels, out, *settings, size, parts, colour=channels == 3, lanes=_LANES, **EXACT)


@on_its_device
def brighten(levels: Tensor, out: Tensor, shift: NDArray[Any]) -> None:
    """Raise HSV's value."""
    _launch(_brighten_kernel, levels, out, *sent(levels, shift))


@triton.jit
def _saturate_kernel(levels, out, scale, shift, size, parts, colour: tl.constexpr, lanes: tl.constexpr):
    image, pixel, inside = here(size, parts, lanes)
    times, plus = tl.load(scale + image), tl.load(shift + image)
    first = image.to(tl.int64) * size * 3
    source, target = levels + first + pixel, out + first + pixel
    red = unit(tl.load(source, inside, other=0))
    green = unit(tl.load(source + size, inside, other=0))
    blue = unit(tl.load(source + 2 * size, inside, other=0))
    value = tl.maximum(tl.maximum(red, green), blue)
    spread = value - tl.minimum(tl.minimum(red, green), blue)
    gray = tl.where(spread <= 0.0, 1.0, 0.0)
    saturation = tl.div_rn(spread, value + tl.where(value <= 0.0, 1.0, 0.0))
    wanted = _clipped(saturation * times + plus) * value
    ratio = tl.div_rn(wanted, spread + gray)
    reddened = wanted * gray
    tl.store(target, level(value - (value - red) * ratio), inside)
    tl.store(target + size, level(value - (value - green) * ratio - reddened), inside)
    tl.store(target + 2 * size, level(value - (value - blue) * ratio - reddened), inside)


@on_its_device
def saturate(levels: Tensor, out: Tensor, scale: NDArray[Any], shift: NDArray[Any]) -> None:
    """Replace HSV's saturation S by S · scale + shift; of three channels."""
    _launch(_saturate_kernel, levels, out, *sent(levels, scale, shift))


@triton.jit
def _flatten_kernel(levels, out, factor, size, channels, lanes: tl.constexpr):
    """A plane for each program: it is read twice, the second time mostly from the cache."""
    plane = tl.program_id(0)
    kept = tl.load(factor + plane // channels)
    levels += plane.to(tl.int64) * size
    out += plane.to(tl.int64) * size
    high = tl.zeros((lanes,), tl.int32)
    low = tl.zeros((lanes,), tl.int32)
    for start in range(0, size, lanes):
        index = start + tl.arange(0, lanes)
        # Levels in [0, 1] are multiples of 2⁻³²: their sum is exact in two halves.
        scaled = unit(tl.load(levels + index, index < size, other=0)) * 65536.0
        whole = scaled.to(tl.int32)
        high += whole
        low += ((scaled - whole.to(tl.float32)) * 65536.0).to(tl.int32)
    total = tl.sum(high.to(tl.int64), axis=0) * 65536 + tl.sum(low.to(tl.int64), axis=0)
    mean = (total.to(tl.float64) * 2.3283064365386963e-10 / size.to(tl.float64)).to(tl.float32)
    offset = mean * (1.0 - kept)
    for start in range(0, size, lanes):
        index = start + tl.arange(0, lanes)
        value = unit(tl.load(levels + index, index < size, other=0))
        tl.store(out + index, level(value * kept + offset), index < size)


@on_its_device
def flatten(levels: Tensor, out: Tensor, factor: NDArray[Any]) -> None:
    """Pull every value towards the mean of its channel."""
    batch, channels, size = levels.shape
    _flatten_kernel[(batch * channels,)](levels, out, *sent(levels, factor), size, channels, lanes=2048, **EXACT)


@triton.jit
def _blend_kernel(
    levels, out, sheets, chosen, tops, lefts, image_weight, sheet_weight, tall, wide, size, width, parts,
    colour: tl.constexpr, lanes: tl.constexpr,
):  # fmt: skip
    image, pixel, inside = here(size, parts, lanes)
    row = pixel // width
    crop = (tl.load(tops + image) + row) * wide + tl.load(lefts + image) + pixel - row * width
    sheet = tall * wide
    sheets += tl.load(chosen + image).to(tl.int64) * 3 * sheet
    weight, other = tl.load(image_weight + image), tl.load(sheet_weight + image)
    red = unit(tl.load(sheets + crop, inside, other=0))
    green = unit(tl.load(sheets + sheet + crop, inside, other=0))
    blue = unit(tl.load(sheets + 2 * sheet + crop, inside, other=0))
    first = image.to(tl.int64) * size * (3 if colour else 1)
    source, target = levels + first + pixel, out + first + pixel
    if colour:
        value = unit(tl.load(source, inside, other=0))
        tl.store(target, level(tl.fma(red, other, value * weight)), inside)
        value = unit(tl.load(source + size, inside, other=0))
        tl.store(target + size, level(tl.fma(green, other, value * weight)), inside)
        value = unit(tl.load(source + 2 * size, inside, other=0))
        tl.store(target + 2 * size, level(tl.fma(blue, other, value * weight)), inside)
    else:
        value = unit(tl.load(source, inside, other=0))
        tl.store(target, level(tl.fma(luminance(red, green, blue), other, value * weight)), inside)


@on_its_device
def blend(
    levels: Tensor,
    out: Tensor,
    sheets: Tensor,
    chosen: NDArray[Any],
    top: NDArray[Any],
    left: NDArray[Any],
    image_weight: NDArray[Any],
    sheet_weight: NDArray[Any],
) -> None:
    """Level · weight + crop of a texture · weight; images (B, C, H, W), textures (N, 3, h, w) uint8."""
    batch, channels, height, width = levels.shape
    parts = triton.cdiv(height * width, _LANES)
    settings = sent(levels, chosen, top, left, image_weight, sheet_weight)
    shape = (*sheets.shape[-2:], height * width, width, parts)
    _blend_kernel[(batch * parts,)](levels, out, sheets, *settings, *shape, colour=channels == 3, lanes=_LANES, **EXACT)
