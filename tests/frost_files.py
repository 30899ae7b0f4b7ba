"""Photographs of frost for tests: made-up ones, and the reference's where they are on this machine."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset

import blemish
from blemish.ops.codecs import MissingCodecError
from blemish.ops.photographs import MissingFrostError
from pictures import pictures

NAMES = ["frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"]
SIZES = [(40, 30), (25, 70), (33, 33), (64, 28), (30, 45)]


class Frosted(Dataset[torch.Tensor]):
    """Three pictures; here, because processes that are started anew can import this module."""

    def __init__(self, transform: blemish.Corrupt) -> None:
        self.transform = transform

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.transform(pictures(1, 3, 32, 32)[0], id=index)


def draw_pictures(folder: Path, seed: int = 0) -> Path:
    """Five noisy pictures of different sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for name, size in zip(NAMES, SIZES, strict=True):
        Image.fromarray(rng.integers(0, 256, (*size, 3), dtype=np.uint8)).save(folder / name)
    return folder


def digest(folder: Path) -> str:
    return hashlib.blake2b(b"".join((folder / name).read_bytes() for name in NAMES), digest_size=8).hexdigest()


def skip_without_files(corruption: blemish.Corruption) -> blemish.Corruption:
    """The corruption, unless it lacks what only some machines have."""
    try:
        corruption.check_files()
    except MissingFrostError:
        pytest.skip("the reference's photographs of frost are not on this machine (blemish fetch-frost)")
    except MissingCodecError as error:
        pytest.skip(str(error))
    return corruption
