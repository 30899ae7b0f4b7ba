"""Centre zooms against SciPy's zoom of the same crop, and box and bilinear filters against Pillow's, bit for bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from torch import Tensor

import blemish
from blemish.ops.resample import centre_zoom, pixelated

BOX = Image.Resampling.BOX


def scipy_zoom(image: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """The reference's recipe on one plane: crop the centre, zoom it linearly, trim what is too much."""
    starts_and_sizes = [((n - math.ceil(n / factor)) // 2, math.ceil(n / factor)) for n in image.shape]
    (top, tall), (left, wide) = starts_and_sizes
    crop = image[top : top + tall, left : left + wide]
    zoomed = ndimage.zoom(crop, factor, order=1, mode="nearest")
    down, right = ((after - before) // 2 for after, before in zip(zoomed.shape, image.shape, strict=True))
    return zoomed[down : down + image.shape[0], right : right + image.shape[1]]


@pytest.mark.parametrize("size", [(8, 8), (32, 32), (31, 57), (80, 9), (64, 48)])
@pytest.mark.parametrize("factor", [1.0, 1.01, 1.06, 1.15, 1.3, 1.75, 2.0, 2.25, 3.0, 4.5, 7.9])
def test_centre_zoom_is_scipys_zoom_of_the_crop(size: tuple[int, int], factor: float) -> None:
    batch = torch.from_numpy(np.random.default_rng(0).random((2, 3, *size)))
    found = centre_zoom(batch, factor)
    assert found.shape == batch.shape
    expected = np.stack([[scipy_zoom(plane, factor) for plane in image] for image in batch.numpy()])
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(8, 90), st.integers(8, 90), st.floats(1, 5))
def test_centre_zoom_by_any_factor(height: int, width: int, factor: float) -> None:
    batch = torch.from_numpy(np.random.default_rng(1).random((1, 1, height, width)))
    found = centre_zoom(batch, factor)[0, 0].numpy()
    np.testing.assert_allclose(found, scipy_zoom(batch[0, 0].numpy(), factor), rtol=0, atol=1e-10)


def test_centre_zoom_by_hand() -> None:
    """Of eight values the middle four, 2 … 5, spread over eight places: steps of 3/7."""
    ramp = torch.arange(8, dtype=torch.float64).expand(1, 1, 8, 8)
    expected = 2 + 3 / 7 * np.arange(8)
    np.testing.assert_allclose(centre_zoom(ramp, 2.0)[0, 0, 3].numpy(), expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(centre_zoom(ramp.mT, 2.0)[0, 0, :, 3].numpy(), expected, rtol=0, atol=1e-14)


def test_centre_zoom_by_one_is_the_image() -> None:
    batch = torch.rand(1, 3, 17, 20, generator=torch.Generator().manual_seed(0))
    assert torch.equal(centre_zoom(batch, 1.0), batch)


def levels(count: int, channels: int, height: int, width: int, *, high: int, seed: int) -> Tensor:
    """Few levels make many means that are exactly a half."""
    drawn = np.random.default_rng(seed).integers(0, high, (count, channels, height, width), dtype=np.uint8)
    return torch.from_numpy(drawn)


def picture(image: Tensor) -> Image.Image:
    channels = len(image)
    made = Image.fromarray(image.permute(1, 2, 0).numpy() if channels == 3 else image[0].numpy())
    assert made.mode == ("RGB" if channels == 3 else "L")
    return made


def as_planes(made: Image.Image) -> NDArray[np.uint8]:
    array = np.array(made)
    return array.reshape(*array.shape[:2], -1).transpose(2, 0, 1)


def pillow_boxes(image: Tensor, height: int, width: int) -> NDArray[np.uint8]:
    """One (C, H, W) image there and back.

    Its rows are shortened first, as Pillow did in one call until version 12. Version 13 begins with the columns where
    that removes more than twice as many pixels from them: in images more than twice as tall as wide.
    """
    made = picture(image)
    small = made.resize((width, made.height), BOX).resize((width, height), BOX)
    return as_planes(small.resize(made.size, BOX))


sizes, scales = st.integers(8, 80), st.floats(0.2, 1)
highs, seeds, channels = st.sampled_from([2, 8, 256]), st.integers(0, 2**32), st.sampled_from([1, 3])


@settings(max_examples=80, deadline=None)
@given(sizes, sizes, scales, channels, highs, seeds)
def test_pixelate_is_pillows_box_there_and_back(
    height: int, width: int, scale: float, channels: int, high: int, seed: int
) -> None:
    """Through the catalog's corruption, which cuts sides down to whole pixels as the reference does."""
    batch = levels(2, channels, height, width, high=high, seed=seed)
    found = blemish.catalog["pixelate"].render(batch, {"scale": torch.full((2,), scale, dtype=torch.float64)}, ())
    assert found.dtype == torch.uint8
    expected = [pillow_boxes(image, max(1, int(height * scale)), max(1, int(width * scale))) for image in batch]
    np.testing.assert_array_equal(found.numpy(), expected)


@settings(max_examples=60, deadline=None)
@given(sizes, st.floats(0.6, 4), scales, channels, seeds)
def test_pixelate_is_two_calls_of_resize(height: int, aspect: float, scale: float, channels: int, seed: int) -> None:
    """Written as the reference writes it, for images that are not much taller than wide."""
    width = min(80, max(8, round(height * aspect)))
    image = levels(1, channels, height, width, high=256, seed=seed)
    target = max(1, int(width * scale)), max(1, int(height * scale))
    expected = as_planes(picture(image[0]).resize(target, BOX).resize((width, height), BOX))
    found = blemish.catalog["pixelate"].render(image, {"scale": torch.tensor([scale], dtype=torch.float64)}, ())
    np.testing.assert_array_equal(found[0].numpy(), expected)


@settings(max_examples=60, deadline=None)
@given(sizes, sizes, scales, scales, highs, seeds)
def test_pixelated_with_a_scale_per_side(
    height: int, width: int, tall: float, wide: float, high: int, seed: int
) -> None:
    batch = levels(1, 3, height, width, high=high, seed=seed)
    target = max(1, int(height * tall)), max(1, int(width * wide))
    np.testing.assert_array_equal(pixelated(batch, *target)[0].numpy(), pillow_boxes(batch[0], *target))


@pytest.mark.parametrize("side", [8, 9, 31, 32, 57, 64, 75, 80, 224, 299])
def test_pixelated_to_every_width_and_height(side: int) -> None:
    """Every number of pixels from a fifth of the side up, where rounding could put a pixel into the wrong box."""
    image = levels(1, 1, 8, side, high=256, seed=side)
    for target in range(max(1, side // 5), side + 1, 1 if side < 100 else 7):
        np.testing.assert_array_equal(pixelated(image, 8, target)[0].numpy(), pillow_boxes(image[0], 8, target))
        tall = image.transpose(-1, -2)
        np.testing.assert_array_equal(pixelated(tall, target, 8)[0].numpy(), pillow_boxes(tall[0], target, 8))


def test_pixelated_by_hand() -> None:
    """Pairs along the rows first, halves up: (0, 1) and (2, 5) to 1 and 4; then down the columns."""
    image = torch.tensor([[0, 1, 2, 5], [0, 0, 0, 0]], dtype=torch.uint8)
    found = pixelated(image[None, None], 1, 2)[0, 0]
    assert found.tolist() == [[1, 1, 2, 2], [1, 1, 2, 2]]


@pytest.mark.xfail(
    strict=True, reason="from ten pixels per box on, Pillow's weights are cut so that some halves go down"
)
def test_pixelated_to_less_than_a_fifth() -> None:
    """No published table goes there. The mean of nine 0s and a 5 is a half; Pillow's 1/10 is 419430/2²²."""
    image = torch.tensor([0] * 9 + [5], dtype=torch.uint8).expand(1, 1, 10, 10).contiguous()
    np.testing.assert_array_equal(pixelated(image, 10, 1)[0].numpy(), pillow_boxes(image[0], 10, 1))


def test_pixelated_leaves_its_input_alone() -> None:
    batch = levels(1, 3, 20, 24, high=256, seed=0)
    before = batch.clone()
    assert torch.equal(pixelated(batch, 20, 24), before)
    pixelated(batch, 7, 5)
    assert torch.equal(batch, before)
