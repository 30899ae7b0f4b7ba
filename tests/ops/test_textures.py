"""Frost textures: how they are scaled and cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

import blemish
from blemish.core.rng import CounterRng, as_ids
from blemish.ops.photographs import Photographs
from blemish.ops.textures import Textures, cut, frost_textures
from frost_files import NAMES, draw_pictures

CPU = torch.device("cpu")


def pixels(path: Path) -> NDArray[np.uint8]:
    """(3, H, W)."""
    with Image.open(path) as picture:
        return np.array(picture.convert("RGB")).transpose(2, 0, 1)


def bilinear(image: NDArray[np.uint8], factor: float) -> NDArray[np.float64]:
    """Output pixel i samples at (i + ½)/factor − ½, no further out than the edges; as many as fit."""
    image = image.astype(np.float64)
    for axis in (1, 2):
        size = image.shape[axis]
        place = np.clip((np.arange(int(size * factor)) + 0.5) / factor - 0.5, 0, size - 1)
        low = np.floor(place).astype(int)
        high = np.minimum(low + 1, size - 1)
        share = np.expand_dims(place - low, [i for i in range(3) if i != axis])
        image = image.take(low, axis) * (1 - share) + image.take(high, axis) * share
    return image


class TestScaling:
    @pytest.mark.parametrize(
        ("scale", "height", "width"),
        [(1.0, 8, 8), (0.5, 8, 8), (0.5, 12, 10), (0.2, 32, 32), (1.0, 20, 50), (1.0, 90, 20), (1.0, 100, 75)],
    )
    def test_textures_are_scaled_and_enlarged_beyond_the_image(
        self, scale: float, height: int, width: int, tmp_path: Path
    ) -> None:
        """Each by the preset's scale, or by what it takes to be two pixels larger than the image both ways."""
        found = frost_textures(Photographs.of(draw_pictures(tmp_path)), scale, height, width, CPU)
        assert found.sheets.dtype == torch.uint8
        assert found.sheets.shape[:2] == (5, 3)
        for sheet, name, size in zip(found.sheets, NAMES, found.sizes, strict=True):
            source = pixels(tmp_path / name)
            factor = max(scale, (height + 2) / source.shape[1], (width + 2) / source.shape[2])
            expected = bilinear(source, factor)
            assert size == expected.shape[1:]
            assert size[0] > height
            assert size[1] > width
            # Rounded to the nearest level, with some room for float32.
            difference = sheet[:, : size[0], : size[1]].numpy() - expected
            assert abs(difference).max() <= 0.5 + 1e-3
            assert not sheet[:, size[0] :].any()
            assert not sheet[:, :, size[1] :].any()

    def test_our_own_are_enlarged_too(self) -> None:
        assert frost_textures(None, 1.0, 510, 300, CPU).sizes == [(512, 512)] * 5
        assert frost_textures(None, 1.0, 300, 766, CPU).sizes == [(768, 768)] * 5
        assert frost_textures(None, 0.3, 64, 64, CPU).sizes == [(153, 153)] * 5

    @pytest.mark.parametrize("size", [(8, 8), (40, 40), (63, 20)])
    def test_crops_stay_inside_and_reach_both_ends(self, size: tuple[int, int], tmp_path: Path) -> None:
        """The reference never uses the last possible row and column."""
        frost = blemish.catalog.with_frost(draw_pictures(tmp_path))["frost"]
        count = 4000
        params = frost.table.at([3.0] * count, "imagenet")
        crop = frost.draw(blemish.Shape(3, *size), params, CounterRng(0, as_ids(range(count)), "frost"))
        used = frost_textures(Photographs.of(tmp_path), 1.0, *size, CPU)
        for texture, (height, width) in enumerate(used.sizes):
            chosen = crop.texture == texture
            assert chosen.sum() > 600
            for start, room in ((crop.top[chosen], height - size[0]), (crop.left[chosen], width - size[1])):
                assert (start.min(), start.max()) == (0, room - 1)


def texture_set() -> Textures:
    sheets = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (5, 3, 50, 60), dtype=np.uint8))
    return Textures(sheets, [(50, 60)] * 5)


class _Elsewhere(str):
    """A device that torch takes for the CPU, and that says it is another."""

    type = "cuda"
    __slots__ = ()


class _Sheets:
    """Sheets on such a device."""

    device = _Elsewhere("cpu")

    def __init__(self, sheets: Tensor) -> None:
        self.sheets = sheets

    def __getitem__(self, index: Any) -> Tensor:
        return self.sheets[index]


class TestCut:
    chosen, top, left = torch.tensor([[4, 0, 2, 2, 1], [0, 41, 7, 8, 41], [3, 0, 11, 43, 43]])

    def test_crops_are_slices(self) -> None:
        used = texture_set()
        found = cut(used, self.chosen, self.top, self.left, 9, 17)
        assert found.shape == (5, 3, 9, 17)
        for b, c, y, x in np.ndindex(5, 3, 9, 17):
            assert found[b, c, y, x] == used.sheets[self.chosen[b], c, self.top[b] + y, self.left[b] + x]

    def test_the_gather_of_a_gpu_gives_the_same(self) -> None:
        used = texture_set()
        expected = cut(used, self.chosen, self.top, self.left, 9, 17)
        elsewhere: Any = Textures(_Sheets(used.sheets), used.sizes)  # type: ignore[arg-type]
        assert torch.equal(cut(elsewhere, self.chosen, self.top, self.left, 9, 17), expected)

    def test_on_a_gpu(self, device: torch.device) -> None:
        used = texture_set()
        there = cut(Textures(used.sheets.to(device), used.sizes), self.chosen, self.top, self.left, 9, 17)
        assert torch.equal(there.cpu(), cut(used, self.chosen, self.top, self.left, 9, 17))


def test_our_own_textures_are_five_different_sheets_of_bluish_ice() -> None:
    sheets = frost_textures(None, 1.0, 8, 8, CPU).sheets.double()
    red, green, blue = sheets.mean((0, 2, 3)).tolist()
    assert red < green < blue
    assert (sheets.std((1, 2, 3)) > 20).all()
    for i in range(5):
        for j in range(i):
            assert (sheets[i] - sheets[j]).abs().mean() > 20
