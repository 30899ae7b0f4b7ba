"""Filters over the eight neighbours, and lines of images mixed with others; float32 (B, C, H, W).

Each product and sum is rounded by itself, but for those of `addcmul`, as by the plain operations.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.fused.levels import EXACT, here
from blemish.ops.fused.on_device import on_its_device, sent

_LANES = 512


@triton.jit
def _mirrored(index, size):
    """A place one beyond the border, mirrored without the edge."""
    index = tl.where(index < 0, -index, index)
    return tl.where(index >= size, 2 * size - 2 - index, index)


@triton.jit
def _around(images, channels, height, width, parts, lanes: tl.constexpr):
    """This program's image and place, and the nine values around each pixel; the border mirrors without its edge."""
    plane, pixel, inside = here(height * width, parts, lanes)
    source = images + plane.to(tl.int64) * height * width
    y = pixel // width
    x = pixel - y * width
    up, down = _mirrored(y - 1, height), _mirrored(y + 1, height)
    left, right = _mirrored(x - 1, width), _mirrored(x + 1, width)
    a = tl.load(source + up * width + left, inside, other=0.0)
    b = tl.load(source + up * width + x, inside, other=0.0)
    c = tl.load(source + up * width + right, inside, other=0.0)
    d = tl.load(source + y * width + left, inside, other=0.0)
    e = tl.load(source + pixel, inside, other=0.0)
    f = tl.load(source + y * width + right, inside, other=0.0)
    g = tl.load(source + down * width + left, inside, other=0.0)
    h = tl.load(source + down * width + x, inside, other=0.0)
    i = tl.load(source + down * width + right, inside, other=0.0)
    return plane // channels, plane.to(tl.int64) * height * width + pixel, inside, a, b, c, d, e, f, g, h, i


@triton.jit
def _emboss_kernel(images, out, strengths, alphas, channels, height, width, parts, lanes: tl.constexpr):
    image, target, inside, a, b, _, d, e, f, _, h, i = _around(images, channels, height, width, parts, lanes)
    strength = tl.load(strengths + image)
    slope = (i - a) * (1.0 + strength) + (((h - b) + f) - d) * strength
    tl.store(out + target, tl.fma(slope, tl.load(alphas + image), e), inside)


@triton.jit
def _sharpen_kernel(images, out, alphas, gains, channels, height, width, parts, lanes: tl.constexpr):
    image, target, inside, a, b, c, d, e, f, g, h, i = _around(images, channels, height, width, parts, lanes)
    block = (((a + b) + c) + ((d + e) + f)) + ((g + h) + i)
    tl.store(out + target, e * tl.load(gains + image) - block * tl.load(alphas + image), inside)


def _launch(kernel: Any, images: Tensor, first: Tensor, second: Tensor) -> Tensor:
    images = images.contiguous()
    batch, channels, height, width = images.shape
    out = torch.empty_like(images)
    parts = triton.cdiv(height * width, _LANES)
    settings = (first.contiguous(), second.contiguous(), channels, height, width, parts)
    kernel[(batch * channels * parts,)](images, out, *settings, lanes=_LANES, **EXACT)
    return out


@on_its_device
def embossed(images: Tensor, strength: Tensor, alpha: Tensor) -> Tensor:
    """Images and ``alpha`` times their differences along a diagonal, and in rows and columns; (B, 1, 1, 1) each."""
    return _launch(_emboss_kernel, images, strength, alpha)


@on_its_device
def sharpened(images: Tensor, alpha: Tensor, gain: Tensor) -> Tensor:
    """Images times ``gain`` less ``alpha`` times the sums of 3 × 3; (B, 1, 1, 1) each."""
    return _launch(_sharpen_kernel, images, alpha, gain)


@triton.jit
def _lines_kernel(
    images, out, first_rows, second_rows, downs, first_columns, second_columns, rights,
    channels, size, width, tall, wide, parts, lanes: tl.constexpr,
):  # fmt: skip
    plane, pixel, inside = here(tall * wide, parts, lanes)
    image = plane // channels
    y = pixel // wide
    x = pixel - y * wide
    row, column = image * tall + y, image * wide + x
    upper = tl.load(first_rows + row, inside, other=0) * width
    lower = tl.load(second_rows + row, inside, other=0) * width
    left = tl.load(first_columns + column, inside, other=0)
    right = tl.load(second_columns + column, inside, other=0)
    down = tl.load(downs + row, inside, other=0.0)
    share = tl.load(rights + column, inside, other=0.0)
    source = images + plane.to(tl.int64) * size
    above = tl.load(source + upper + left, inside, other=0.0) * (1.0 - share)
    above += tl.load(source + upper + right, inside, other=0.0) * share
    below = tl.load(source + lower + left, inside, other=0.0) * (1.0 - share)
    below += tl.load(source + lower + right, inside, other=0.0) * share
    tl.store(out + plane.to(tl.int64) * tall * wide + pixel, above * (1.0 - down) + below * down, inside)


@on_its_device
def mixed_lines(images: Tensor, columns: tuple[NDArray[Any], ...], rows: tuple[NDArray[Any], ...]) -> Tensor:
    """Columns, then rows, mixed of two: numbers of the first and second ones and the second's share, (B, n) each."""
    images = images.contiguous()
    batch, channels, height, width = images.shape
    tall, wide = rows[0].shape[1], columns[0].shape[1]
    out = torch.empty((batch, channels, tall, wide), dtype=torch.float32, device=images.device)
    parts = triton.cdiv(tall * wide, _LANES)
    shape = (channels, height * width, width, tall, wide, parts)
    places = sent(images, *rows, *columns)
    _lines_kernel[(batch * channels * parts,)](images, out, *places, *shape, lanes=_LANES, **EXACT)
    return out
