"""Animations: every frame arrives, in the format that the suffix names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, features

from blemish.core.errors import InputError, StorageError
from blemish.reports.animation import write_animation

FORMATS = [
    "gif",
    pytest.param("webp", marks=pytest.mark.skipif(not features.check("webp"), reason="Pillow without WebP")),
]


def frames(count: int, mode: str = "RGB") -> list[Image.Image]:
    levels = np.random.default_rng(0).integers(0, 256, (count, 20, 30, 3), dtype=np.uint8)
    return [Image.fromarray(level).convert(mode) for level in levels]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_frames_arrive(tmp_path: Path, suffix: str, mode: str) -> None:
    path = tmp_path / f"film.{suffix}"
    assert write_animation(iter(frames(5, mode)), path, milliseconds=70) == 5
    with Image.open(path) as film:
        assert film.format == suffix.upper()
        assert film.size == (30, 20)
        assert film.n_frames == 5
        assert film.info["loop"] == 0
        film.seek(3)
        film.load()
        assert film.info["duration"] == 70
        shown = np.asarray(film.convert("L"), dtype=float)
    expected = [np.asarray(frame.convert("L"), dtype=float) for frame in frames(5, mode)]
    distances = [np.abs(shown - frame).mean() for frame in expected]
    assert int(np.argmin(distances)) == 3


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ends in \.gif or \.webp"):
        write_animation(frames(1), tmp_path / "film.png")
    with pytest.raises(InputError, match="no such folder"):
        write_animation(frames(1), tmp_path / "gone" / "film.gif")
    with pytest.raises(InputError, match="no frames"):
        write_animation([], tmp_path / "film.gif")
    (tmp_path / "folder.gif").mkdir()
    with pytest.raises(StorageError, match="cannot write"):
        write_animation(frames(1), tmp_path / "folder.gif")
