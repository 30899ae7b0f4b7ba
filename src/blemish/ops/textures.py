"""Frost textures: photographs (see `photographs`), or sheets of ice that are drawn here; scaled and cut."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng, as_ids
from blemish.ops.cache import cached
from blemish.ops.filters import gaussian_blur
from blemish.ops.photographs import Photographs, load
from blemish.ops.plasma import plasma, plasma_sizes
from blemish.ops.resample import rescaled
from blemish.ops.transfer import to_device

_COUNT, _SIDE = 5, 512


@lru_cache(maxsize=1)
def _drawn() -> tuple[Tensor, ...]:
    """Five sheets of ice: fern crystals over a clouded film, in the blues and whites of frost."""
    count = _COUNT
    rng = CounterRng(0, as_ids(range(count)), "frost-texture")
    wobble = [rng.coarse_uniforms(f"film {n}", 3, n, n).mul_(2).sub_(1) for n in plasma_sizes(_SIDE)]
    film = plasma(wobble, torch.full((count,), 1.8, dtype=torch.float64))
    ferns = _ferns(rng)
    glow = gaussian_blur(ferns, torch.full((count,), 4.0, dtype=torch.float64), border="reflect")
    # Light from one side gives the crystals relief.
    relief = ferns - ferns.roll((2, 2), (-2, -1))
    ice = 0.3 + 0.3 * film + 0.26 * ferns + 0.3 * glow + 0.22 * relief
    tint = torch.tensor([0.84, 0.95, 1.04], dtype=torch.float32).view(1, 3, 1, 1)
    return tuple((ice * tint).clamp_(0, 1).mul_(255).to(torch.uint8))


def _ferns(rng: CounterRng) -> Tensor:
    """How densely crystals cover each pixel, 0 … 1: stems with side needles at 60° that shorten towards the tip."""
    count, stems = _COUNT, 460
    heading, turn, size, x, y = rng.uniforms("stems", 5, stems, 1, 1).to(torch.float64).unbind(1)
    # Neighbouring stems grow in similar directions.
    angle = 2 * math.pi * (x + y + 0.6 * heading) + 0.5 * turn
    length = 16 + 74 * size**2
    root = torch.arange(20, dtype=torch.float64).view(-1, 1) * 4.5  # where on the stem a pair of needles starts
    needle = torch.arange(24, dtype=torch.float64)
    extent = 0.42 * (length - root)
    inside = (needle < extent) & (root < length)
    bend = 0.004 * root * (turn - 0.5)
    positions = []
    for side in (-math.pi / 3, math.pi / 3):
        px = x * _SIDE + root * (angle + bend).cos() + needle * (angle + side + bend).cos()
        py = y * _SIDE + root * (angle + bend).sin() + needle * (angle + side + bend).sin()
        row, column = (p.floor().to(torch.int64) % _SIDE for p in (py, px))
        positions.append((row * _SIDE + column).flatten(1))
    sheet = torch.zeros(count, _SIDE * _SIDE, dtype=torch.float32)
    for position in positions:
        sheet.scatter_add_(1, position, inside.expand(count, -1, -1, -1).to(torch.float32).flatten(1))
    return 1 - torch.exp(-1.1 * sheet.view(count, 1, _SIDE, _SIDE))


class Textures(NamedTuple):
    """Uint8 textures in the top left corners of one tensor (N, 3, h, w), and the (height, width) of each."""

    sheets: Tensor
    sizes: list[tuple[int, int]]


@cached(mebibytes=256)
def _scaled(photographs: Photographs | None, scale: float, height: int, width: int, device: torch.device) -> Textures:
    """Kept by the digest of the photographs, wherever they lie."""
    scaled = []
    for texture in _drawn() if photographs is None else load(*photographs.find()):
        tall, wide = texture.shape[-2:]
        # A texture must be larger than the image; the reference never met an image larger than its textures.
        factor = max(scale, (height + 2) / tall, (width + 2) / wide)
        if factor != 1:
            texture = rescaled(texture, factor)
        scaled.append(texture)
    sizes = [(texture.shape[-2], texture.shape[-1]) for texture in scaled]
    sheets = torch.zeros((len(scaled), 3, max(h for h, _ in sizes), max(w for _, w in sizes)), dtype=torch.uint8)
    for sheet, texture in zip(sheets, scaled, strict=True):
        sheet[:, : texture.shape[-2], : texture.shape[-1]] = texture
    return Textures(sheets.to(device), sizes)


def frost_textures(
    photographs: Photographs | None, scale: float, height: int, width: int, device: torch.device
) -> Textures:
    """Photographs, or the drawn sheets where none are given; scaled, and enlarged until they exceed height × width.

    Those in a folder that the user named may change, which is refused; the reference's are looked up once.
    """
    if photographs is not None and photographs.folder is not None:
        photographs.check()
    return _scaled(photographs, scale, height, width, device)


def cut(textures: Textures, chosen: Tensor, top: Tensor, left: Tensor, height: int, width: int) -> Tensor:
    """Crops (B, 3, height, width) of the chosen textures; the three (B,) tensors of places live on the CPU."""
    sheets = textures.sheets
    if sheets.device.type == "cpu":
        positions = zip(chosen.tolist(), top.tolist(), left.tolist(), strict=True)
        return torch.stack([sheets[i, :, y : y + height, x : x + width] for i, y, x in positions])
    # One gather instead of a slice per image.
    chosen, top, left = to_device(torch.stack([chosen, top, left]), sheets.device)
    rows = (top[:, None] + torch.arange(height, device=sheets.device))[:, None, :, None]
    columns = (left[:, None] + torch.arange(width, device=sheets.device))[:, None, None, :]
    channels = torch.arange(3, device=sheets.device)[:, None, None]
    return sheets[chosen[:, None, None, None], channels, rows, columns]
