"""Synthetic JPEG files in class folders, the size of ImageNet's: written once by all cores, then read by timings."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES, WIDTH, HEIGHT, QUALITY = 1000, 500, 375, 90


def write_files(folder: Path, count: int) -> Path:
    """``count`` smooth pictures with grain, 500 × 375 pixels, quality 90, spread over a thousand folders."""
    for label in range(CLASSES):
        (folder / f"{label:04}").mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:
        shares = np.array_split(np.arange(count), 8 * (os.cpu_count() or 1))
        list(pool.map(_write, [folder] * len(shares), [share.tolist() for share in shares]))
    return folder


def _write(folder: Path, numbers: list[int]) -> None:
    for number in numbers:
        rng = np.random.default_rng(number)
        coarse = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC), dtype=np.int16)
        grain = rng.integers(-16, 17, smooth.shape, dtype=np.int16)
        picture = Image.fromarray((smooth + grain).clip(0, 255).astype(np.uint8))
        picture.save(folder / f"{number % CLASSES:04}" / f"{number:06}.jpg", quality=QUALITY)
