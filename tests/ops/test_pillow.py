"""Resizing as Pillow does it: compared with Pillow itself."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch
from PIL import Image

from blemish.core.types import Square
from blemish.ops.pillow import Filter, resized, squared


@pytest.mark.parametrize(
    ("size", "target"),
    [
        ((37, 50), (29, 29)),
        ((50, 37), (16, 16)),
        ((9, 60), (30, 30)),
        ((64, 64), (150, 150)),
        ((30, 30), (30, 30)),
        ((224, 224), (260, 300)),
    ],
)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", get_args(Filter))
def test_resizing_is_pillows(size: tuple[int, int], target: tuple[int, int], channels: int, kind: Filter) -> None:
    levels = np.random.default_rng(3).integers(0, 256, (2, channels, *size), dtype=np.uint8)
    found = resized(torch.from_numpy(levels), *target, kind)
    assert found.dtype == torch.uint8
    method = Image.Resampling[kind.upper()]
    # One after the other, as Pillow always did: its newer versions take rows first where that is quicker.
    for image, made in zip(levels, found.numpy(), strict=True):
        for plane, result in zip(image, made, strict=True):
            across = Image.fromarray(plane).resize((target[1], size[0]), method)
            expected = across.resize((target[1], target[0]), method)
            np.testing.assert_array_equal(result, np.array(expected))


def test_a_square_takes_the_middle_of_both_sides() -> None:
    levels = torch.from_numpy(np.random.default_rng(4).integers(0, 256, (1, 3, 40, 61), dtype=np.uint8))
    assert torch.equal(squared(levels, Square(20, 0.8)), resized(levels[..., 4:36, 6:54], 20, 20, "bilinear"))
    assert torch.equal(squared(levels, Square(20)), resized(levels, 20, 20, "bilinear"))
    assert str(Square(299, 0.875)) == "the middle 87.5 % of each side, as 299×299 pixels"


def test_resizing_does_not_depend_on_the_default_device() -> None:
    levels = torch.from_numpy(np.random.default_rng(5).integers(0, 256, (1, 3, 31, 45), dtype=np.uint8))
    expected = resized(levels, 23, 27, "bilinear")
    torch.set_default_device("meta")
    try:
        found = resized(levels, 22, 26, "bilinear"), resized(levels, 23, 27, "bilinear")
    finally:
        torch.set_default_device(None)
    assert found[0].device.type == "cpu"
    assert torch.equal(found[1], expected)
