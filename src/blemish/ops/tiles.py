"""Banks of small pictures that images are tiled or covered with: drawn here, or cut from pictures of the user's.

A bank is known by its digest. The published bank of LAION-C was never distributed, so that neither is that one.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.reading import open_regular
from blemish.core.rng import CounterRng, as_ids, hash_id
from blemish.ops.cache import cached
from blemish.ops.pillow import resized
from blemish.ops.resample import enlarged

DRAWN_DIGEST = "2a88ae7d82ab50d1"

_SIDE = 32
# The mean colours of drawn tiles stand on a grid with this many steps of red, green and blue.
_STEPS = 16
_COUNT = _STEPS**3
# How far apart the channels of a nearly gray colour may be, in levels.
_MUTED = 32

_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"})
# Shorter sides of the crops that tiles are made of, in pixels.
_LEAST_CROP, _MOST_CROP = 40, 200


@dataclass(frozen=True)
class TileBank:
    """Small pictures. Without a ``folder`` they are drawn; otherwise they are cut from the pictures in it.

    Both travel to workers, where other pictures are refused.
    """

    folder: Path | None = field(default=None, compare=False)
    digest: str = DRAWN_DIGEST

    @classmethod
    def of(cls, folder: str | os.PathLike[str]) -> TileBank:
        """A bank of crops from the pictures in a folder and its subfolders."""
        path = Path(folder).expanduser().absolute()
        return cls(path, _digest(_cut(path)))

    @property
    def kind(self) -> str:
        """What protocols call it: ``drawn``, or ``custom-`` and the digest."""
        return "drawn" if self.folder is None else f"custom-{self.digest}"

    @property
    def note(self) -> str:
        """The published tiles were never distributed, so that no bank gives published numbers."""
        return f"{self.kind} tiles, LAION-C-like: not comparable with published numbers"

    def check(self) -> None:
        """Raise if the pictures in the folder are not those that the bank was made of."""
        self._tiles()

    def at(self, side: int, device: torch.device) -> Tensor:
        """All tiles at a side in pixels, uint8 (N, 3, side, side)."""
        return _at(self, side, str(device))

    def common(self, side: int, device: torch.device) -> Tensor:
        """Tiles in the colours of photographs: of the drawn ones, those that are nearly gray."""
        tiles = self.at(side, device)
        return tiles if self.folder is not None else tiles[: _means()[1]]

    def _tiles(self) -> Tensor:
        if self.folder is None:
            return _drawn()
        tiles = _cut(self.folder)
        if (digest := _digest(tiles)) != self.digest:
            raise InputError(f"{self.folder}: pictures for tiles with digest {digest}; expected {self.digest}")
        return tiles


@cached(mebibytes=256)
def _at(bank: TileBank, side: int, device: str) -> Tensor:
    tiles = bank._tiles().to(device)
    return tiles if side == _SIDE else resized(tiles, side, side, "bicubic")


def _digest(tiles: Tensor) -> str:
    return hashlib.blake2b(tiles.numpy().tobytes(), digest_size=8).hexdigest()


@lru_cache(maxsize=1)
def _means() -> tuple[Tensor, int]:
    """Mean colours on a grid, (N, 3), so that every colour has one near it; nearly gray ones first, and how many."""
    level = (torch.arange(_STEPS, dtype=torch.float32, device="cpu") + 0.5) * (256 / _STEPS)
    means = torch.cartesian_prod(level, level, level)
    muted = means.amax(1) - means.amin(1) <= _MUTED
    return torch.cat([means[muted], means[~muted]]), int(muted.sum())


@lru_cache(maxsize=1)
def _drawn() -> Tensor:
    """Tiles of one colour each, with soft gray textures."""
    means = _means()[0].view(-1, 3, 1, 1)
    rng = CounterRng(0, as_ids(range(_COUNT)), "tiles")
    texture = torch.zeros(_COUNT, 1, _SIDE, _SIDE, dtype=torch.float32, device="cpu")
    for side, weight in ((2, 1.0), (5, 0.7), (12, 0.4)):
        texture += enlarged(rng.uniforms(f"texture {side}", 1, side, side).sub_(0.5), _SIDE, _SIDE) * weight
    texture -= texture.mean((2, 3), keepdim=True)
    # No stronger than the mean colour has room for, so that clipping does not move it.
    room = torch.minimum(means, 255 - means).amin(1, keepdim=True).clamp_(max=60)
    reach = texture.abs().amax((2, 3), keepdim=True)
    return (means + texture * (room / reach)).round_().clamp_(0, 255).to(torch.uint8)


def _pictures(folder: Path) -> list[Path]:
    try:
        pictures = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES and path.is_file())
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed ({error.strerror or error})") from error
    if not pictures:
        raise InputError(f"{folder}: no pictures in it; expected some to cut tiles from, such as .jpg or .png")
    return pictures


@lru_cache(maxsize=2)
def _cut(folder: Path) -> Tensor:
    """Random crops of the pictures, all pictures in turn; which ones depends on the pictures' names alone."""
    paths = _pictures(folder)[:_COUNT]
    tiles = np.empty((_COUNT, _SIDE, _SIDE, 3), dtype=np.uint8)
    for number, path in enumerate(paths):
        places = range(number, _COUNT, len(paths))
        rng = CounterRng(0, as_ids([hash_id(path.relative_to(folder).as_posix())]), "tiles")
        draws = rng.uniforms("crop", len(places), 3)[0].tolist()
        try:
            with open_regular(path) as stream, Image.open(stream) as opened:
                picture = opened.convert("RGB")
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise InputError(f"{path}: not a readable picture ({error})") from error
        shorter = min(picture.size)
        for tile, (size, across, down) in zip(places, draws, strict=True):
            side = min(shorter, round(_LEAST_CROP + (_MOST_CROP - _LEAST_CROP) * size))
            left, top = (
                int(share * (extent - side + 1)) for share, extent in zip((across, down), picture.size, strict=True)
            )
            crop = picture.crop((left, top, left + side, top + side))
            tiles[tile] = np.asarray(crop.resize((_SIDE, _SIDE), Image.Resampling.BOX))
    return torch.from_numpy(tiles).permute(0, 3, 1, 2).contiguous()
