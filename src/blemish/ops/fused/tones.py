"""Hue, saturation, value and lightness of float32 images (B, 3, H, W), pixel by pixel.

Products and sums are rounded separately, as by the plain operations of `blemish.ops.hue`, `hsv` and `colour`.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from blemish.ops.fused.levels import EXACT, absolute, here, luminance
from blemish.ops.fused.on_device import on_its_device

_LANES = 512


@triton.jit
def _six(value):
    """The remainder of a division by 6, as torch's."""
    rest = value - tl.floor(tl.div_rn(value, 6.0)) * 6.0
    rest = tl.where(rest < 0.0, rest + 6.0, rest)
    return tl.where(rest >= 6.0, rest - 6.0, rest)


@triton.jit
def _clipped(value):
    return tl.minimum(tl.maximum(value, 0.0), 1.0)


@triton.jit
def _colours(images, size, parts, lanes: tl.constexpr):
    """This program's image, where its pixels begin, which there are, and their colours."""
    image, pixel, inside = here(size, parts, lanes)
    first = image.to(tl.int64) * size * 3 + pixel
    red = tl.load(images + first, inside, other=0.0)
    green = tl.load(images + first + size, inside, other=0.0)
    blue = tl.load(images + first + 2 * size, inside, other=0.0)
    return image, pixel, first, inside, red, green, blue


@triton.jit
def _store(out, first, size, inside, red, green, blue):
    tl.store(out + first, red, inside)
    tl.store(out + first + size, green, inside)
    tl.store(out + first + 2 * size, blue, inside)


@triton.jit
def _largest(red, green, blue):
    return tl.maximum(tl.maximum(red, green), blue)


@triton.jit
def _least(red, green, blue):
    return tl.minimum(tl.minimum(red, green), blue)


@triton.jit
def _sixths(red, green, blue, value, chroma):
    """The hue in sextants, not yet brought between 0 and 6."""
    turned = tl.where(value == green, (blue - red) + 2.0 * chroma, (red - green) + 4.0 * chroma)
    return tl.div_rn(tl.where(value == red, green - blue, turned), chroma + tl.where(chroma <= 0.0, 1.0, 0.0))


@triton.jit
def _trapezium(sixths, start, value, chroma):
    phase = _six(sixths + start)
    return value - _clipped(tl.minimum(phase, 4.0 - phase)) * chroma


@triton.jit
def _turn_kernel(images, out, turns, size, parts, lanes: tl.constexpr):
    image, _, first, inside, red, green, blue = _colours(images, size, parts, lanes)
    value = _largest(red, green, blue)
    chroma = value - _least(red, green, blue)
    sixths = _sixths(red, green, blue, value, chroma) + 6.0 * tl.load(turns + image)
    red, green = _trapezium(sixths, 5.0, value, chroma), _trapezium(sixths, 3.0, value, chroma)
    _store(out, first, size, inside, red, green, _trapezium(sixths, 1.0, value, chroma))


def _launch(kernel: Any, images: Tensor, *settings: Tensor | int) -> Tensor:
    images = images.contiguous()
    out = torch.empty_like(images)
    size = images.shape[-1] * images.shape[-2]
    parts = triton.cdiv(size, _LANES)
    kernel[(len(images) * parts,)](images, out, *settings, size, parts, lanes=_LANES, **EXACT)
    return out


@on_its_device
def turn_hue(images: Tensor, turns: Tensor) -> Tensor:
    """What `blemish.ops.hue.turn_hue` gives of colours; turns (B, 1, 1, 1)."""
    return _launch(_turn_kernel, images, turns.contiguous())


@triton.jit
def _ramp(sixths, peak, sign: tl.constexpr):
    away = absolute(sixths - peak)
    return _clipped(away - 1.0 if sign > 0 else -away + 2.0)


@triton.jit
def _hsv_kernel(images, out, turn, saturation, brightness, size, parts, lanes: tl.constexpr):
    image, _, first, inside, red, green, blue = _colours(images, size, parts, lanes)
    largest = _largest(red, green, blue)
    spread = largest - _least(red, green, blue)
    wanted = _clipped(largest + tl.load(brightness + image))
    share = tl.div_rn(spread, largest + tl.where(largest <= 0.0, 1.0, 0.0))
    room = _clipped(share + tl.load(saturation + image)) * wanted
    turned = tl.where(largest == green, (blue - red) + 2.0 * spread, (red - green) + 4.0 * spread)
    turned = tl.where(largest == red, green - blue, turned)
    sixths = _six(tl.div_rn(turned, tl.where(spread == 0.0, 1.0, spread)))
    sixths = _six(sixths + tl.load(turn + image))
    red = (_ramp(sixths, 3.0, 1) - 1.0) * room + wanted
    green = (_ramp(sixths, 2.0, -1) - 1.0) * room + wanted
    _store(out, first, size, inside, red, green, (_ramp(sixths, 4.0, -1) - 1.0) * room + wanted)


@on_its_device
def shift_hsv(images: Tensor, turn: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """What `blemish.ops.hsv.shift_hsv` gives of colours; the shifts are (B, 1, 1, 1)."""
    return _launch(_hsv_kernel, images, turn.contiguous(), saturation.contiguous(), value.contiguous())


@triton.jit
def _room(light):
    """The largest spread between channels that is possible at a lightness."""
    return -absolute(light * 2.0 - 1.0) + 1.0


@triton.jit
def _relight_kernel(images, out, factors, step, pixel_step, size, parts, lanes: tl.constexpr):
    image, pixel, first, inside, red, green, blue = _colours(images, size, parts, lanes)
    light = (_largest(red, green, blue) + _least(red, green, blue)) * 0.5
    factor = tl.load(factors + image.to(tl.int64) * step + pixel * pixel_step, inside, other=0.0)
    # The nearest whole level, the even one of two.
    whole = (light * 255.0 + 12582912.0) - 12582912.0
    new = tl.minimum(tl.floor(whole * factor + 0.000244140625) * 0.00392156862745098, 1.0)
    room = _room(light)
    ratio = tl.div_rn(_room(new), tl.where(room <= 0.0, 1.0, room))
    red, green = (red - light) * ratio + new, (green - light) * ratio + new
    _store(out, first, size, inside, red, green, (blue - light) * ratio + new)


@on_its_device
def relit(images: Tensor, factor: Tensor) -> Tensor:
    """Colours with another lightness, made of whole levels; factors (B, 1, H, W) or (B, 1, 1, 1)."""
    factor = factor.contiguous()
    per_image = factor[0].numel()
    return _launch(_relight_kernel, images, factor, per_image, int(per_image > 1))


@triton.jit
def _fade_kernel(images, out, weights, size, parts, lanes: tl.constexpr):
    image, _, first, inside, red, green, blue = _colours(images, size, parts, lanes)
    weight = tl.load(weights + image)
    gray = luminance(red, green, blue) * weight
    rest = 1.0 - weight
    _store(out, first, size, inside, red * rest + gray, green * rest + gray, blue * rest + gray)


@on_its_device
def faded(images: Tensor, weight: Tensor) -> Tensor:
    """Colours mixed with their luminance by weights (B, 1, 1, 1)."""
    return _launch(_fade_kernel, images, weight.contiguous())


@triton.jit
def _gray_kernel(images, out, size, parts, lanes: tl.constexpr):
    image, pixel, _, inside, red, green, blue = _colours(images, size, parts, lanes)
    tl.store(out + image.to(tl.int64) * size + pixel, luminance(red, green, blue), inside)


@triton.jit
def _away_kernel(images, out, factors, own, shared, means, size, parts, lanes: tl.constexpr):
    image, _, first, inside, red, green, blue = _colours(images, size, parts, lanes)
    factor = tl.load(factors + image)
    anchor = luminance(red, green, blue) * tl.load(own + image) + tl.load(means + image) * tl.load(shared + image)
    anchor = anchor * (1.0 - factor)
    red, green = _clipped(red * factor + anchor), _clipped(green * factor + anchor)
    _store(out, first, size, inside, red, green, _clipped(blue * factor + anchor))


@on_its_device
def moved_from_gray(images: Tensor, factor: Tensor, own: Tensor, shared: Tensor) -> Tensor:
    """Colours times a factor, away from black, their own gray or the mean gray, as the last two say; (B, 1, 1, 1)."""
    images = images.contiguous()
    batch, _, height, width = images.shape
    gray = torch.empty((batch, 1, height, width), dtype=torch.float32, device=images.device)
    parts = triton.cdiv(height * width, _LANES)
    _gray_kernel[(batch * parts,)](images, gray, height * width, parts, lanes=_LANES, **EXACT)
    means = gray.mean(3, keepdim=True).mean(2, keepdim=True)
    return _launch(_away_kernel, images, factor.contiguous(), own.contiguous(), shared.contiguous(), means)


@triton.jit
def _tone(red, green, blue, old, matrix, row, weight):
    mixed = red * tl.load(matrix + 3 * row) + green * tl.load(matrix + 3 * row + 1)
    mixed = tl.minimum((mixed + blue * tl.load(matrix + 3 * row + 2)) * 0.0009765625, 1.0)
    return old * (1.0 - weight) + mixed * weight


@triton.jit
def _tone_kernel(images, out, weights, matrix, size, parts, lanes: tl.constexpr):
    image, _, first, inside, red, green, blue = _colours(images, size, parts, lanes)
    weight = tl.load(weights + image)
    one = _tone(red, green, blue, red, matrix, 0, weight)
    two = _tone(red, green, blue, green, matrix, 1, weight)
    _store(out, first, size, inside, one, two, _tone(red, green, blue, blue, matrix, 2, weight))


@on_its_device
def toned(images: Tensor, weight: Tensor, matrix: Tensor) -> Tensor:
    """Colours mixed with tones, a matrix (3, 3) in 1/1024 of them, of at most 1, by weights (B, 1, 1, 1)."""
    return _launch(_tone_kernel, images, weight.contiguous(), matrix)
