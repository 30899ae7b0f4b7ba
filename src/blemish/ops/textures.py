"""Frost textures: the reference's photographs where they can be found, else a procedural ice texture.

Looked up in the directory named by the environment variable BLEMISH_FROST_DIR (the word `procedural` asks for ours);
else in the installed distribution `imagecorruptions`, without importing it; else made here, which every record states
as ``frost=procedural``.
"""

from __future__ import annotations

import hashlib
import math
import os
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor
from torch.nn import functional as F

from blemish.ops.filters import gaussian_blur
from blemish.ops.plasma import plasma, plasma_sizes
from blemish.ops.transfer import send
from blemish.rng import Words, as_ids
from blemish.types import InputError

__all__ = ["FROST_VARIABLE", "PROCEDURAL", "Textures", "cut", "frost_kind", "frost_textures"]

FROST_VARIABLE = "BLEMISH_FROST_DIR"
PROCEDURAL = "procedural"
_NAMES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
_SIDE = 512
_REFERENCE_DIGEST = "1ccf9cdf7955d7fa"


def _directory() -> Path | None:
    named = os.environ.get(FROST_VARIABLE)
    if named == PROCEDURAL:
        return None
    return Path(named) if named else _installed()


@lru_cache(maxsize=1)
def _installed() -> Path | None:
    try:
        files = metadata.distribution("imagecorruptions").files or []
    except metadata.PackageNotFoundError:
        return None
    folders = {Path(str(file.locate())).parent for file in files if file.name == _NAMES[0]}
    return next((folder for folder in folders if all((folder / name).is_file() for name in _NAMES)), None)


def _stamp(folder: Path) -> tuple[int, ...]:
    """Changes when the files do, so that what was read of them is not used for others."""
    try:
        states = [(folder / name).stat() for name in _NAMES]
    except OSError as error:
        raise _unusable(folder, Path(str(error.filename)).name, error) from error
    return tuple(number for state in states for number in (state.st_mtime_ns, state.st_size))


def _unusable(folder: Path, name: str, error: Exception) -> InputError:
    return InputError(
        f"no readable frost texture {folder / name} ({error}); expected {', '.join(_NAMES)} in {folder}, "
        f"or unset {FROST_VARIABLE}"
    )


@lru_cache(maxsize=4)
def _digest(folder: Path, stamp: tuple[int, ...]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for name in _NAMES:
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()


def frost_kind() -> str:
    """Which textures frost uses now: `reference`, `procedural`, or `custom-…` with a digest of the user's files."""
    folder = _directory()
    if folder is None:
        return PROCEDURAL
    _load(folder, _stamp(folder))
    digest = _digest(folder, _stamp(folder))
    return "reference" if digest == _REFERENCE_DIGEST else f"custom-{digest}"


@lru_cache(maxsize=4)
def _load(folder: Path, stamp: tuple[int, ...]) -> tuple[Tensor, ...]:
    textures = []
    for name in _NAMES:
        try:
            with Image.open(folder / name) as picture:
                textures.append(torch.from_numpy(np.array(picture.convert("RGB"))).permute(2, 0, 1).contiguous())
        except (OSError, UnidentifiedImageError) as error:
            raise _unusable(folder, name, error) from error
    return tuple(textures)


@lru_cache(maxsize=1)
def _procedural() -> tuple[Tensor, ...]:
    """Five sheets of ice: fern crystals over a clouded film, in the blues and whites of frost."""
    count = len(_NAMES)
    words = Words(0, as_ids(range(count)), "frost-texture")
    wobble = [words.coarse_uniforms(f"film {n}", 3, n, n).mul_(2).sub_(1) for n in plasma_sizes(_SIDE)]
    film = plasma(wobble, torch.full((count,), 1.8, dtype=torch.float64))
    ferns = _ferns(words)
    glow = gaussian_blur(ferns, torch.full((count,), 4.0, dtype=torch.float64), border="reflect")
    # Light from one side gives the crystals relief.
    relief = ferns - ferns.roll((2, 2), (-2, -1))
    ice = 0.3 + 0.3 * film + 0.26 * ferns + 0.3 * glow + 0.22 * relief
    tint = torch.tensor([0.84, 0.95, 1.04]).view(1, 3, 1, 1)
    return tuple((ice * tint).clamp_(0, 1).mul_(255).to(torch.uint8))


def _ferns(words: Words) -> Tensor:
    """How densely crystals cover each pixel, 0 … 1: stems with side needles at 60° that shorten towards the tip."""
    count, stems = len(_NAMES), 460
    heading, turn, size, x, y = words.uniforms("stems", 5, stems, 1, 1).to(torch.float64).unbind(1)
    # Neighbouring stems grow in similar directions.
    angle = 2 * math.pi * (x + y + 0.6 * heading) + 0.5 * turn
    length = 16 + 74 * size**2
    root = torch.arange(20, dtype=torch.float64).view(-1, 1) * 4.5  # where on the stem a pair of needles starts
    needle = torch.arange(24, dtype=torch.float64)
    extent = 0.42 * (length - root)
    inside = (needle < extent) & (root < length)
    bend = 0.004 * root * (turn - 0.5)
    places = []
    for side in (-math.pi / 3, math.pi / 3):
        px = x * _SIDE + root * (angle + bend).cos() + needle * (angle + side + bend).cos()
        py = y * _SIDE + root * (angle + bend).sin() + needle * (angle + side + bend).sin()
        row, column = (p.floor().to(torch.int64) % _SIDE for p in (py, px))
        places.append((row * _SIDE + column).flatten(1))
    sheet = torch.zeros(count, _SIDE * _SIDE)
    for place in places:
        sheet.scatter_add_(1, place, inside.expand(count, -1, -1, -1).to(torch.float32).flatten(1))
    return 1 - torch.exp(-1.1 * sheet.view(count, 1, _SIDE, _SIDE))


class Textures(NamedTuple):
    """Uint8 textures in the top left corners of one tensor (N, 3, h, w), and the (height, width) of each."""

    sheets: Tensor
    sizes: list[tuple[int, int]]


@lru_cache(maxsize=16)
def _scaled(
    folder: Path | None, stamp: tuple[int, ...], scale: float, height: int, width: int, device: torch.device
) -> Textures:
    scaled = []
    for texture in _procedural() if folder is None else _load(folder, stamp):
        tall, wide = texture.shape[-2:]
        # A texture must be larger than the image; the reference never met an image larger than its textures.
        factor = max(scale, (height + 2) / tall, (width + 2) / wide)
        if factor != 1:
            # The scale itself, not the ratio of rounded sizes, decides where to sample: so does OpenCV.
            floats = F.interpolate(texture.to(torch.float32)[None], scale_factor=factor, mode="bilinear")
            texture = floats[0].add_(0.5).to(torch.uint8)
        scaled.append(texture)
    sizes = [(texture.shape[-2], texture.shape[-1]) for texture in scaled]
    sheets = torch.zeros((len(scaled), 3, max(h for h, _ in sizes), max(w for _, w in sizes)), dtype=torch.uint8)
    for sheet, texture in zip(sheets, scaled, strict=True):
        sheet[:, : texture.shape[-2], : texture.shape[-1]] = texture
    return Textures(sheets.to(device), sizes)


def frost_textures(scale: float, height: int, width: int, device: torch.device) -> Textures:
    """Frost textures, scaled, and enlarged where that is needed to exceed height × width."""
    folder = _directory()
    return _scaled(folder, () if folder is None else _stamp(folder), scale, height, width, device)


def cut(textures: Textures, chosen: Tensor, top: Tensor, left: Tensor, height: int, width: int) -> Tensor:
    """Crops (B, 3, height, width) of the chosen textures; the three (B,) tensors of places live on the CPU."""
    sheets = textures.sheets
    if sheets.device.type == "cpu":
        places = zip(chosen.tolist(), top.tolist(), left.tolist(), strict=True)
        return torch.stack([sheets[i, :, y : y + height, x : x + width] for i, y, x in places])
    # One gather instead of a slice per image.
    chosen, top, left = send(torch.stack([chosen, top, left]), sheets.device)
    rows = (top[:, None] + torch.arange(height, device=sheets.device))[:, None, :, None]
    columns = (left[:, None] + torch.arange(width, device=sheets.device))[:, None, None, :]
    channels = torch.arange(3, device=sheets.device)[:, None, None]
    return sheets[chosen[:, None, None, None], channels, rows, columns]
