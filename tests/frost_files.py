"""Photographs of frost for tests: made-up ones, and the reference's where they are on this machine."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import blemish
from blemish.ops.photographs import MissingFrostError

NAMES = ["frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"]
SIZES = [(40, 30), (25, 70), (33, 33), (64, 28), (30, 45)]


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
    return corruption
