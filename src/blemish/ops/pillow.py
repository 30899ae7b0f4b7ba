"""Pillow's bilinear and bicubic resizing of 8-bit images: whole-number weights, columns first, each pass rounded.

Bit for bit, but that newer versions of Pillow take rows first where that is quicker: one level on some values.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.types import Square
from blemish.ops.cache import cached
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out

Filter = Literal["bilinear", "bicubic"]

# Weights have so many bits after the point. Sums of 255 times the weights of either filter stay below 2³¹.
_BITS = 22
_SUPPORT = {"bilinear": 1, "bicubic": 2}


def resized(levels: Tensor, height: int, width: int, kind: Filter) -> Tensor:
    """Uint8 images (…, H, W) of another size, uint8."""
    tall, wide = levels.shape[-2:]
    on_cpu = levels.device.type == "cpu" and levels.numel() > 0
    kernels = compiled("resizing", worthwhile=False) if on_cpu else None
    if kernels is not None:
        out = torch.empty((*levels.shape[:-2], height, width), dtype=torch.uint8, device="cpu")
        planes = [values.view(-1, *values.shape[-2:]) for values in (levels.contiguous(), out)]
        shared_out(kernels.resized, planes, *_runs(wide, width, kind), *_runs(tall, height, kind))
        return out
    columns = _pass(levels.contiguous().to(torch.int32).view(-1, wide, 1), width, kind)
    rows = _pass(columns.view(-1, tall, width), height, kind)
    return rows.to(torch.uint8).view(*levels.shape[:-2], height, width)


def squared(levels: Tensor, square: Square) -> Tensor:
    """The middle of uint8 images as a square, bilinear; the middle is placed as torchvision's CenterCrop does."""
    height, width = levels.shape[-2:]
    tall, wide = square.kept(height, width)
    top, left = round((height - tall) / 2), round((width - wide) / 2)
    return resized(levels[..., top : top + tall, left : left + wide], square.side, square.side, "bilinear")


def _pass(lines: Tensor, target: int, kind: Filter) -> Tensor:
    """The middle dimension of (N, source, W) whole levels, held as int32, at another length. Exact on every device."""
    if lines.shape[1] == target:
        return lines
    pixels, weights = _taps(lines.shape[1], target, kind, lines.device)
    total = torch.full((len(lines), target, lines.shape[2]), 2 ** (_BITS - 1), dtype=torch.int32, device=lines.device)
    for pixel, weight in zip(pixels, weights, strict=True):
        total.addcmul_(lines.index_select(1, pixel), weight[:, None])
    return (total >> _BITS).clamp_(0, 255)


@lru_cache(maxsize=64)
def _runs(source: int, target: int, kind: Filter) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Of each place the first source pixel, and the weights of those from there on (target, taps)."""
    if source == target:
        return np.arange(source), np.full((source, 1), 2**_BITS, np.int32)
    pixels, weights = _taps(source, target, kind, torch.device("cpu"))
    return pixels[0].numpy(), np.ascontiguousarray(weights.T.numpy())


@cached()
def _taps(source: int, target: int, kind: Filter, device: torch.device) -> tuple[Tensor, Tensor]:
    """A filter as (taps, target) source pixels and whole weights of 2^22; it widens to shrink.

    Also used where nobody has set the caller's own default device aside.
    """
    scale = source / target
    stretch = max(scale, 1.0)
    reach = _SUPPORT[kind] * stretch
    centres = (torch.arange(target, dtype=torch.float64, device="cpu") + 0.5) * scale
    first, last = (centres - reach + 0.5).floor().clamp(min=0), (centres + reach + 0.5).floor().clamp(max=source)
    pixels = first + torch.arange(int((last - first).max()), dtype=torch.float64, device="cpu")[:, None]
    weights = _weights(((pixels - centres + 0.5) / stretch).abs(), kind) * (pixels < last)
    shares = weights / weights.cumsum(0)[-1]  # summed in Pillow's order
    whole = (shares * 2**_BITS + 0.5 * torch.where(shares < 0, -1.0, 1.0)).trunc()
    return pixels.clamp(max=source - 1).to(device, torch.int64), whole.to(device, torch.int32)


def _weights(distance: Tensor, kind: Filter) -> Tensor:
    """What a pixel at a distance contributes before the weights are made to sum to one."""
    if kind == "bilinear":
        return (1 - distance).clamp(min=0)
    near = ((1.5 * distance - 2.5) * distance * distance) + 1
    far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
    return torch.where(distance < 1, near, torch.where(distance < 2, far, 0.0))
