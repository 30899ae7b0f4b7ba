"""Affine maps, projections and displacement fields: against SciPy's interpolation at the same places."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor

from blemish.ops.warp import Outside, affine_from_points, bilinear, displace, projected, sample, warp_affine

SIZES = [(8, 8), (24, 37), (50, 21)]


def images(count: int, height: int, width: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.from_numpy(np.random.default_rng(0).random((count, 3, height, width))).to(dtype)


def interpolated(batch: Tensor, y: NDArray[np.float64], x: NDArray[np.float64], mode: str) -> NDArray[np.float64]:
    """Each channel of image b at (y[b], x[b])."""
    planes = batch.double().numpy()
    places = zip(planes, y, x, strict=True)
    return np.stack(
        [
            [ndimage.map_coordinates(p, [down, right], order=1, mode=mode) for p in image]
            for image, down, right in places
        ]
    )


def nearly_identity(count: int, strength: float, seed: int = 1) -> Tensor:
    """Maps that shear and scale a little, and move by up to 40 · strength pixels."""
    maps = np.random.default_rng(seed).uniform(-strength, strength, (count, 2, 3))
    maps[:, :, 2] *= 40
    return torch.from_numpy(maps) + torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=torch.float64)


def test_affine_maps_take_targets_back_to_sources() -> None:
    rng = np.random.default_rng(0)
    corners = np.array([[10.0, 20.0], [40.0, 22.0], [12.0, 50.0]])
    source, target = (torch.from_numpy(corners + rng.uniform(-5, 5, (6, 3, 2))) for _ in range(2))
    backward = affine_from_points(source, target)
    assert backward.shape == (6, 2, 3)
    assert backward.dtype == torch.float64
    for matrix, there, here in zip(backward.numpy(), source.numpy(), target.numpy(), strict=True):
        for (x, y), expected in zip(here, there, strict=True):
            np.testing.assert_allclose(matrix @ [x, y, 1], expected, rtol=0, atol=1e-12)
    forward = affine_from_points(target, source)
    bottom = torch.tensor([[[0.0, 0.0, 1.0]]], dtype=torch.float64).expand(6, -1, -1)
    both = torch.cat([backward, bottom], 1) @ torch.cat([forward, bottom], 1)
    np.testing.assert_allclose(both.numpy(), np.broadcast_to(np.eye(3), both.shape), rtol=0, atol=1e-10)


def test_affine_maps_are_what_lapack_finds() -> None:
    """Points of any order, so that rows change places: the same map but for the last digits."""
    source, target = (torch.from_numpy(np.random.default_rng(n).uniform(-9, 9, (200, 3, 2))) for n in (0, 1))
    rows = torch.cat([target, torch.ones(200, 3, 1, dtype=torch.float64)], dim=2)
    expected = torch.linalg.solve(rows, source).transpose(1, 2)
    np.testing.assert_allclose(affine_from_points(source, target), expected, rtol=1e-9, atol=1e-12)
    alone = torch.cat([affine_from_points(a[None], b[None]) for a, b in zip(source, target, strict=True)])
    assert torch.equal(alone, affine_from_points(source, target))


def test_affine_maps_by_hand() -> None:
    source = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]], dtype=torch.float64)
    moved = affine_from_points(source, source + torch.tensor([3.0, -2.0]))
    np.testing.assert_allclose(moved[0].numpy(), [[1, 0, -3], [0, 1, 2]], rtol=0, atol=1e-12)
    # A quarter turn takes (1, 0) to (0, 1) and (0, 1) to (−1, 0); back, x is the target's y.
    turned = torch.tensor([[[0.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]], dtype=torch.float64)
    np.testing.assert_allclose(affine_from_points(source, turned)[0].numpy(), [[0, 1, 0], [-1, 0, 0]], atol=1e-12)


def opencv_positions(backward: Tensor, height: int, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """y and x, (B, H, W): two whole numbers of 1/1024 pixel, and their sum rounded to 1/32, pixel by pixel."""
    places = np.zeros((len(backward), 2, height, width))
    for b, matrix in enumerate(backward.tolist()):
        for axis, (a, c, d) in enumerate(matrix):
            for y in range(height):
                for x in range(width):
                    fine = round(a * x * 1024) + round((c * y + d) * 1024)
                    places[b, axis, y, x] = (fine + 16) // 32 / 32
    return places[:, 1], places[:, 0]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("strength", [0.0, 0.02, 0.3, 2.0])
def test_affine_warps_sample_at_opencvs_places(size: tuple[int, int], strength: float) -> None:
    """The strongest leave the image by several of its sizes."""
    batch, backward = images(3, *size, torch.float32), nearly_identity(3, strength)
    expected = interpolated(batch, *opencv_positions(backward, *size), "mirror")
    # Float32 places a sample to within some 1e-6 of the distance.
    np.testing.assert_allclose(warp_affine(batch, backward).numpy(), expected, rtol=0, atol=1e-4)


def test_an_affine_warp_rounds_to_a_thirtysecond_of_a_pixel() -> None:
    """0.02 pixel is 20/1024, nearer to 1/32 than to 0; 0.015 is 15/1024, nearer to 0; 1/64 goes up."""
    ramp = torch.arange(16, dtype=torch.float32).expand(1, 1, 16, 16)
    for shift, expected in ((0.02, 1 / 32), (0.015, 0.0), (1 / 64, 1 / 32), (-0.02, -1 / 32), (2.5, 2.5)):
        backward = torch.tensor([[[1.0, 0.0, shift], [0.0, 1.0, 0.0]]], dtype=torch.float64)
        found = warp_affine(ramp, backward)[0, 0, 5, 3:12]
        np.testing.assert_allclose(found.numpy(), np.arange(3, 12) + expected, rtol=0, atol=2e-5)
        down = warp_affine(ramp.mT, backward[:, [1, 0]][..., [1, 0, 2]])[0, 0, 3:12, 5]
        np.testing.assert_allclose(down.numpy(), np.arange(3, 12) + expected, rtol=0, atol=2e-5)


def test_the_identity_warp_keeps_the_image() -> None:
    batch = images(2, 30, 41, torch.float32)
    found = warp_affine(batch, nearly_identity(2, 0.0))
    np.testing.assert_allclose(found.numpy(), batch.numpy(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("strength", [0.0, 0.3, 4.0, 90.0])
def test_displacement_samples_where_the_fields_say(size: tuple[int, int], strength: float) -> None:
    """In float64, so that nothing but the rule can differ; the strongest fields leave the image many times over."""
    batch = images(2, *size)
    dx, dy = np.random.default_rng(2).uniform(-strength, strength, (2, 2, *size))
    y, x = np.mgrid[0 : size[0], 0 : size[1]]
    found = displace(batch, torch.from_numpy(np.stack([dx, dy], axis=1)))
    np.testing.assert_allclose(found.numpy(), interpolated(batch, y + dy, x + dx, "reflect"), rtol=0, atol=1e-10)


def test_displacement_by_hand() -> None:
    """Half a pixel to the right of a ramp; at the end the last value is repeated, and then the ramp goes back."""
    ramp = torch.arange(8, dtype=torch.float32).expand(1, 1, 8, 8)
    zero = torch.zeros(1, 8, 8)
    half = displace(ramp, torch.stack([zero + 0.5, zero], 1))[0, 0, 3]
    np.testing.assert_allclose(half.numpy(), [0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7], atol=1e-5)
    far = displace(ramp, torch.stack([zero + 3, zero], 1))[0, 0, 3]
    np.testing.assert_allclose(far.numpy(), [3, 4, 5, 6, 7, 7, 6, 5], atol=1e-5)
    up = displace(ramp.mT, torch.stack([zero, zero - 2], 1))[0, 0, :, 3]
    np.testing.assert_allclose(up.numpy(), [1, 0, 0, 1, 2, 3, 4, 5], atol=1e-5)


def test_float32_fields_are_as_exact_as_float32() -> None:
    batch = images(2, 64, 64, torch.float32)
    dx, dy = np.random.default_rng(2).uniform(-5, 5, (2, 2, 64, 64)).astype(np.float32)
    y, x = np.mgrid[0:64, 0:64]
    found = displace(batch, torch.from_numpy(np.stack([dx, dy], axis=1)))
    np.testing.assert_allclose(found.numpy(), interpolated(batch, y + dy, x + dx, "reflect"), rtol=0, atol=5e-5)


def test_projections_are_homogeneous_products() -> None:
    affine = nearly_identity(2, 0.3)
    bottom = torch.tensor([[[0.001, -0.002, 1.0]], [[0.0, 0.003, 0.9]]], dtype=torch.float64)
    perspective = torch.cat([affine, bottom], dim=1)
    for backward in (affine, perspective):
        found = torch.stack(projected(backward, 20, 31, torch.device("cpu")), dim=1)
        assert found.dtype == torch.float32
        expected = np.zeros((2, 2, 20, 31))
        for b, y, x in np.ndindex(2, 20, 31):
            place = backward[b].numpy() @ [x, y, 1]
            expected[b, :, y, x] = place[:2] / (place[2] if len(place) == 3 else 1)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("outside", "mode"), [("zeros", "grid-constant"), ("replicate", "nearest"), ("reflect101", "mirror")]
)
@pytest.mark.parametrize("size", SIZES)
def test_samples_are_scipys(size: tuple[int, int], outside: Outside, mode: str) -> None:
    """Of another size than the images, and up to their own size outside."""
    batch = images(2, *size, torch.float32)
    y, x = np.random.default_rng(3).uniform(-1, 2, (2, 2, 17, 29)).astype(np.float32) * np.reshape(size, (2, 1, 1, 1))
    y, x = y.astype(np.float32), x.astype(np.float32)
    found = sample(batch, torch.from_numpy(x), torch.from_numpy(y), outside=outside)
    expected = interpolated(batch, y.astype(np.float64), x.astype(np.float64), mode)
    np.testing.assert_allclose(found.numpy(), expected, rtol=0, atol=1e-4)


def test_nearest_samples_are_pixels() -> None:
    batch = images(2, 24, 37, torch.float32)
    y, x = np.random.default_rng(4).uniform(0, 23, (2, 2, 9, 9)).astype(np.float32)
    found = sample(batch, torch.from_numpy(x), torch.from_numpy(y), outside="zeros", nearest=True).numpy()
    rows, columns = np.rint(y).astype(int), np.rint(x).astype(int)
    for b in range(2):
        np.testing.assert_array_equal(found[b], batch[b].numpy()[:, rows[b], columns[b]])


@pytest.mark.parametrize("size", SIZES)
def test_bilinear_fades_to_black(size: tuple[int, int]) -> None:
    """As SciPy samples the image with a black frame around it, up to several pixels beyond the border."""
    height, width = size
    batch = images(2, height, width)
    generator = np.random.default_rng(1)
    y, x = (generator.uniform(-3, side + 2, (2, 15, 9)) for side in (height, width))
    framed = torch.nn.functional.pad(batch, (5, 5, 5, 5))
    expected = interpolated(framed, y + 5, x + 5, "constant")
    found = bilinear(batch, torch.from_numpy(y), torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_bilinear_keeps_pixels_exactly() -> None:
    levels = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    rows, columns = torch.arange(16, dtype=torch.float64)[None, :, None], torch.arange(16, dtype=torch.float64)
    assert torch.equal(bilinear(levels, rows, columns), levels.double())
    assert torch.equal(bilinear(levels, rows, columns.flip(0)), levels.double().flip(-1))
