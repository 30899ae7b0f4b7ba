"""Frost textures: the reference's photographs where they can be found, else a procedural ice texture.

Looked up in the directory named by the environment variable BLEMISH_FROST_DIR; else in the installed distribution
`imagecorruptions`, without importing it; else made here, which every record states as ``frost=procedural``.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import numpy as np
import torch
from PIL import Image, UnidentifiedImageError
from torch import Tensor
from torch.nn import functional as F

from blemish.ops.filters import gaussian_blur
from blemish.ops.plasma import plasma, plasma_shapes
from blemish.rng import Words, as_ids
from blemish.types import InputError

__all__ = ["FROST_VARIABLE", "frost_kind", "frost_textures"]

FROST_VARIABLE = "BLEMISH_FROST_DIR"
_NAMES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
_REFERENCE_DIGEST = "1ccf9cdf7955d7fa"


def _directory() -> Path | None:
    named = os.environ.get(FROST_VARIABLE)
    return Path(named) if named else _installed()


@lru_cache(maxsize=1)
def _installed() -> Path | None:
    try:
        files = metadata.distribution("imagecorruptions").files or []
    except metadata.PackageNotFoundError:
        return None
    folders = {Path(str(file.locate())).parent for file in files if file.name == _NAMES[0]}
    return next((folder for folder in folders if all((folder / name).is_file() for name in _NAMES)), None)


def _digest(folder: Path) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for name in _NAMES:
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()


def frost_kind() -> str:
    """Which textures frost uses now: `reference`, `procedural`, or `custom-…` with a digest of the user's files."""
    folder = _directory()
    if folder is None:
        return "procedural"
    _load(folder)
    digest = _digest(folder)
    return "reference" if digest == _REFERENCE_DIGEST else f"custom-{digest}"


@lru_cache(maxsize=4)
def _load(folder: Path) -> tuple[Tensor, ...]:
    textures = []
    for name in _NAMES:
        try:
            with Image.open(folder / name) as picture:
                textures.append(torch.from_numpy(np.array(picture.convert("RGB"))).permute(2, 0, 1).contiguous())
        except (OSError, UnidentifiedImageError) as error:
            raise InputError(
                f"no readable frost texture {folder / name} ({error}); expected {', '.join(_NAMES)} in {folder}, "
                f"or unset {FROST_VARIABLE}"
            ) from error
    return tuple(textures)


@lru_cache(maxsize=1)
def _procedural() -> tuple[Tensor, ...]:
    """Five sheets of ice: ridged clouds at two scales, sharpened into needles, in the blues and whites of frost."""
    words = Words(0, as_ids(range(len(_NAMES))), "frost-texture")
    layers = []
    for name, decay in (("coarse", 2.0), ("fine", 1.35)):
        wobble = [words.coarse_uniforms(f"{name}{i}", *size) * 2 - 1 for i, size in enumerate(plasma_shapes(512))]
        layers.append(plasma(wobble, torch.full((len(_NAMES), 1, 1), decay)))
    coarse, fine = layers
    ridges = (1 - (2 * fine - 1).abs() * 4).clamp_(0, 1)
    needles = ridges - gaussian_blur(ridges, torch.full((len(_NAMES),), 3.0, dtype=torch.float64))
    cover = ((coarse - 0.3) * 2.2).clamp_(0, 1)
    ice = (0.18 + 0.55 * cover + 0.9 * needles * (0.3 + cover)).clamp_(0, 1)
    tint = torch.tensor([0.86, 0.95, 1.0]).view(1, 3, 1, 1)
    sheets = (ice * tint + 0.06 * ice.square()).clamp_(0, 1).mul(255).to(torch.uint8)
    return tuple(sheets)


@lru_cache(maxsize=16)
def _scaled(folder: Path | None, scale: float, height: int, width: int, device: torch.device) -> tuple[Tensor, ...]:
    result = []
    for texture in _procedural() if folder is None else _load(folder):
        tall, wide = texture.shape[-2:]
        # A texture must be larger than the image; the reference never met an image larger than its textures.
        factor = max(scale, (height + 2) / tall, (width + 2) / wide)
        if factor != 1:
            # The scale itself, not the ratio of rounded sizes, decides where to sample: so does OpenCV.
            floats = F.interpolate(texture.to(torch.float32)[None], scale_factor=factor, mode="bilinear")
            texture = floats[0].add_(0.5).to(torch.uint8)
        result.append(texture.to(device))
    return tuple(result)


def frost_textures(scale: float, height: int, width: int, device: torch.device) -> tuple[Tensor, ...]:
    """Uint8 textures (3, h, w), scaled, and enlarged where that is needed to exceed height × width."""
    return _scaled(_directory(), scale, height, width, device)
