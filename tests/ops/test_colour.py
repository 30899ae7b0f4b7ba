"""Luminance, saturation and brightness: against the standard library's colorsys, pixel by pixel."""

from __future__ import annotations

import colorsys
import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import blemish
from blemish.ops.colour import luminance, scale_saturation

Colour = tuple[float, float, float]

# Black, white, primaries, secondaries and half-tones; grays; two equal channels; nearly gray and nearly black.
EDGES = [
    *itertools.product([0.0, 0.5, 1.0], repeat=3),
    *((v, v, v) for v in (1 / 255, 0.2, 0.7, 254 / 255)),
    *itertools.permutations((0.3, 0.3, 0.8)),
    *itertools.permutations((0.5, 128 / 255, 127 / 255)),
    *itertools.permutations((1 / 255, 0.0, 0.0)),
]


def colours() -> NDArray[np.float64]:
    """(N, 3) in [0, 1], each on the 256 levels of images, where a gray is exactly gray."""
    rng = np.random.default_rng(0)
    levels = np.rint(np.array(EDGES) * 255)
    return np.concatenate([levels, rng.integers(0, 256, (960 - len(levels), 3))]) / 255


def as_images(values: NDArray[np.float64]) -> Tensor:
    """A batch of two images of the same colours, (2, 3, 30, 32)."""
    image = torch.from_numpy(values.T.reshape(3, 30, 32)).to(torch.float32)
    return torch.stack([image, image.flip(-1)])


def as_colours(image: Tensor) -> NDArray[np.float32]:
    return image.flatten(1).T.numpy()


def through_hsv(values: NDArray[np.float64], change: Callable[[float, float, float], Colour]) -> NDArray[np.float64]:
    return np.array([colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*rgb))) for rgb in values])


def clip(value: float) -> float:
    return min(max(value, 0.0), 1.0)


# The published rows, with scales below and above 1, a shift alone, and one that takes all colour away.
@pytest.mark.parametrize(
    ("scale", "shift"),
    [(0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2), (30, 0.2), (1, 0), (1, 0.5), (0, 0), (0, 0.4), (1, -0.2)],
)
def test_saturation_is_colorsys(scale: float, shift: float) -> None:
    batch = as_images(colours())
    before = batch.clone()
    found = scale_saturation(batch, torch.full((2, 1, 1, 1), float(scale)), torch.full((2, 1, 1, 1), float(shift)))
    expected = through_hsv(colours(), lambda h, s, v: (h, clip(s * scale + shift), v))
    np.testing.assert_allclose(as_colours(found[0]), expected, rtol=0, atol=3e-6)
    np.testing.assert_array_equal(found[1].flip(-1).numpy(), found[0].numpy())
    assert torch.equal(batch, before)


def test_saturation_has_a_scale_and_a_shift_per_image() -> None:
    batch = as_images(colours())
    pairs = [(0.3, 0.0), (5.0, 0.1)]
    scale, shift = torch.tensor(pairs).T.reshape(2, 2, 1, 1, 1)
    for found, one, (a, b) in zip(scale_saturation(batch, scale, shift), batch, pairs, strict=True):
        alone = scale_saturation(one[None], torch.full((1, 1, 1, 1), a), torch.full((1, 1, 1, 1), b))[0]
        assert torch.equal(found, alone)


def test_saturating_by_hand() -> None:
    """(1, ½, ½) has S = ½, and doubled 1; a gray has the hue of red; black stays black."""
    pixels = torch.tensor([[1.0, 0.5, 0.5], [0.6, 0.6, 0.6], [0.0, 0.0, 0.0]]).T.reshape(1, 3, 3, 1)
    found = scale_saturation(pixels, torch.full((1, 1, 1, 1), 2.0), torch.full((1, 1, 1, 1), 0.5))[0, :, :, 0].T
    np.testing.assert_allclose(found.numpy(), [[1, 0, 0], [0.6, 0.3, 0.3], [0, 0, 0]], rtol=0, atol=1e-6)


def test_one_channel_has_no_saturation() -> None:
    gray = as_images(colours())[:, :1]
    assert torch.equal(scale_saturation(gray, torch.full((2, 1, 1, 1), 5.0), torch.full((2, 1, 1, 1), 0.2)), gray)


def truncated(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Whole levels, cut down as the reference cuts them, and where a float32's error cannot decide the cut.

    The library adds 2⁻¹² so that whole levels stay whole: below a whole level the cut then comes that much earlier.
    """
    exact = np.clip(values, 0, 1) * 255
    cut = np.floor(exact + 2.0**-12)
    return cut.astype(np.int64), np.abs(exact + 2.0**-12 - np.rint(exact + 2.0**-12)) > 1e-4


def changed(name: str, severity: float) -> tuple[NDArray[np.uint8], dict[str, float]]:
    """The colours through the catalog's corruption as uint8, and its parameters."""
    corruption = blemish.catalog[name]
    batch = as_images(colours()).mul(255).round().to(torch.uint8)
    params = {name: float(value[0]) for name, value in corruption.table.at([severity], "imagenet").items()}
    return as_colours(corruption(batch, severity=severity, preset="imagenet")[0]), params


@pytest.mark.parametrize("severity", [0.5, 1, 2, 3, 4, 5])
def test_brightness_is_colorsys(severity: float) -> None:
    found, params = changed("brightness", severity)
    expected = through_hsv(colours(), lambda h, s, v: (h, s, clip(v + params["shift"])))
    levels, sure = truncated(expected)
    assert sure.mean() > 0.9
    np.testing.assert_array_equal(found[sure], levels[sure])
    assert abs(found - levels).max() <= 1
    # Without quantising, to the precision of float32.
    shift = torch.full((2,), params["shift"], dtype=torch.float64)
    exact = blemish.catalog["brightness"].apply(as_images(colours()), {"shift": shift}, ())
    np.testing.assert_allclose(as_colours(exact[0]), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_saturate_is_colorsys(severity: float) -> None:
    found, params = changed("saturate", severity)
    levels, sure = truncated(
        through_hsv(colours(), lambda h, s, v: (h, clip(s * params["scale"] + params["shift"]), v))
    )
    assert sure.mean() > 0.9
    np.testing.assert_array_equal(found[sure], levels[sure])
    assert abs(found - levels).max() <= 1


def test_brightness_by_hand() -> None:
    """V = 0.5 + 0.5: doubled. Black becomes gray, and what is bright already keeps its ratio of channels."""
    pixels = torch.tensor([[0.5, 0.25, 0.0], [0.0, 0.0, 0.0], [0.8, 0.4, 0.2]]).T.reshape(1, 3, 3, 1)
    found = blemish.catalog["brightness"].apply(pixels, {"shift": torch.tensor([0.5], dtype=torch.float64)}, ())
    expected = [[1, 0.5, 0], [0.5, 0.5, 0.5], [1, 0.5, 0.25]]
    np.testing.assert_allclose(found[0, :, :, 0].T.numpy(), expected, rtol=0, atol=1e-6)


def test_brightness_of_one_channel_is_a_sum() -> None:
    gray = torch.linspace(0, 1, 64).view(1, 1, 8, 8)
    found = blemish.catalog["brightness"].apply(gray.clone(), {"shift": torch.tensor([0.3], dtype=torch.float64)}, ())
    np.testing.assert_allclose(found.numpy(), (gray + 0.3).clamp(max=1).numpy(), rtol=0, atol=1e-6)


def test_luminance_is_the_y_of_colorsys_yiq() -> None:
    """colorsys rounds the weights to 0.30, 0.59 and 0.11; BT.601 has three decimals: never further apart than 0.01."""
    batch = as_images(colours())
    found = luminance(batch)
    assert found.shape == (2, 1, 30, 32)
    np.testing.assert_allclose(as_colours(found[0])[:, 0], colours() @ [0.299, 0.587, 0.114], rtol=0, atol=1e-6)
    rough = [colorsys.rgb_to_yiq(*rgb)[0] for rgb in colours()]
    np.testing.assert_allclose(as_colours(found[0])[:, 0], rough, rtol=0, atol=0.01)


def test_luminance_of_a_gray_image_is_a_copy() -> None:
    gray = as_images(colours())[:, :1]
    found = luminance(gray)
    assert torch.equal(found, gray)
    assert found.data_ptr() != gray.data_ptr()
