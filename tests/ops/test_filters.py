"""Borders, Gaussian blurs, correlations and line blurs: against NumPy's padding, SciPy's filters and plain loops."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor

from blemish.ops import filters, fourier
from blemish.ops.filters import (
    Border,
    all_near,
    border_index,
    convolve,
    gaussian_arrays,
    gaussian_blur,
    gaussian_taps,
    line_blur,
    near_enough,
    pad,
)

NUMPY_MODE: dict[Border, Any] = {"replicate": "edge", "reflect": "symmetric", "reflect101": "reflect"}
SCIPY_MODE: dict[Border, str] = {"replicate": "nearest", "reflect": "reflect", "reflect101": "mirror"}
BORDERS: list[Border] = list(NUMPY_MODE)

borders = pytest.mark.parametrize("border", BORDERS)


def images(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).random(shape))


def scipy_blur(image: Tensor, sigma: float, truncate: float, border: Border) -> NDArray[np.float64]:
    """One image (C, H, W), each channel by itself."""
    mode = SCIPY_MODE[border]
    return ndimage.gaussian_filter(image.numpy(), sigma, mode=mode, truncate=truncate, axes=(-2, -1))


def scipy_correlate(
    image: Tensor, kernel: Tensor, anchor: tuple[int, int], border: Border
) -> list[NDArray[np.float64]]:
    """SciPy counts its origin from the middle of the kernel, which for even sizes is the later of the two."""
    origin = [a - n // 2 for a, n in zip(anchor, kernel.shape, strict=True)]
    mode = SCIPY_MODE[border]
    return [ndimage.correlate(channel, kernel.numpy(), mode=mode, origin=origin) for channel in image.numpy()]


@borders
@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("margins", [(0, 0), (1, 0), (0, 2), (5, 3), (41, 30)])
def test_border_index_is_numpys_padding(border: Border, size: int, margins: tuple[int, int]) -> None:
    before, after = margins
    expected = np.pad(np.arange(size), margins, mode=NUMPY_MODE[border])
    np.testing.assert_array_equal(border_index(-before, size + after, size, border).numpy(), expected)


@borders
def test_border_index_may_start_and_stop_anywhere(border: Border) -> None:
    padded = np.pad(np.arange(5), 40, mode=NUMPY_MODE[border])
    for start, stop in ((-33, -20), (-3, 2), (1, 4), (3, 9), (11, 38), (2, 2)):
        np.testing.assert_array_equal(border_index(start, stop, 5, border).numpy(), padded[start + 40 : stop + 40])


def test_border_index_by_hand() -> None:
    assert border_index(-3, 6, 3, "replicate").tolist() == [0, 0, 0, 0, 1, 2, 2, 2, 2]
    assert border_index(-3, 6, 3, "reflect").tolist() == [2, 1, 0, 0, 1, 2, 2, 1, 0]
    assert border_index(-3, 6, 3, "reflect101").tolist() == [1, 2, 1, 0, 1, 2, 1, 0, 1]


@borders
@pytest.mark.parametrize(
    "margins", [(0, 0, 0, 0), (1, 2, 3, 4), (8, 8, 6, 6), (9, 1, 2, 0), (0, 3, 7, 1), (30, 9, 25, 40)]
)
def test_pad_is_numpys_padding(border: Border, margins: tuple[int, int, int, int]) -> None:
    """9×7 images: up to 8 rows and 6 columns can be mirrored once, more need several mirrors."""
    batch = images(2, 3, 9, 7)
    top, bottom, left, right = margins
    expected = np.pad(batch.numpy(), ((0, 0), (0, 0), (top, bottom), (left, right)), mode=NUMPY_MODE[border])
    np.testing.assert_array_equal(pad(batch, *margins, border).numpy(), expected)


# 0.17 makes the smallest kernels with three taps, if it is cut at 3. 1.125 · 4 + ½ and 1.5 · 3 + ½ are exactly 5.
@borders
@pytest.mark.parametrize("truncate", [3.0, 4.0])
@pytest.mark.parametrize("sigma", [0.05, 0.12, 0.17, 0.4, 1.0, 1.125, 1.5, 2.44, 6.0, 28.8, 170.0])
def test_gaussian_blur_is_scipys(border: Border, truncate: float, sigma: float) -> None:
    """70 rows are three blocks of a linear map, and the widest kernels are 1361 taps long."""
    batch = images(2, 2, 70, 37)
    found = gaussian_blur(batch, torch.full((2,), sigma, dtype=torch.float64), truncate=truncate, border=border)
    assert found.dtype == torch.float64
    for image, expected in zip(found, batch, strict=True):
        np.testing.assert_allclose(image.numpy(), scipy_blur(expected, sigma, truncate, border), rtol=0, atol=1e-12)


def test_gaussian_blur_cuts_at_four_sigma_and_replicates_unless_told_otherwise() -> None:
    batch = images(1, 1, 20, 24)
    expected = scipy_blur(batch[0], 3.0, 4.0, "replicate")
    found = gaussian_blur(batch, torch.tensor([3.0], dtype=torch.float64))
    np.testing.assert_allclose(found[0].numpy(), expected, rtol=0, atol=1e-12)


@borders
def test_gaussian_blur_with_a_sigma_per_image(border: Border) -> None:
    sigmas = [0.05, 3.0, 0.3, 3.0, 0.0, 60.0]
    batch = images(len(sigmas), 3, 40, 33)
    found = gaussian_blur(batch, torch.tensor(sigmas, dtype=torch.float64), border=border)
    for image, source, sigma in zip(found, batch, sigmas, strict=True):
        np.testing.assert_allclose(image.numpy(), scipy_blur(source, sigma, 4.0, border), rtol=0, atol=1e-12)
    assert torch.equal(found[0], batch[0])
    assert torch.equal(found[4], batch[4])


@borders
@pytest.mark.parametrize("sigma", [0.05, 0.125, 3.0, 20.0])
def test_wide_gaussians_are_matrices_with_what_lies_beyond_the_border_folded_in(border: Border, sigma: float) -> None:
    batch = images(2, 2, 40, 33)
    down, across = (filters._gaussian_map(size, sigma, 4.0, border, batch.device, batch.dtype) for size in (40, 33))
    for image, source in zip(across.across(down.down(batch)), batch, strict=True):
        np.testing.assert_allclose(image.numpy(), scipy_blur(source, sigma, 4.0, border), rtol=0, atol=1e-12)


def test_gaussian_blur_in_float32_is_as_exact_as_float32() -> None:
    batch = images(2, 3, 64, 50)
    found = gaussian_blur(batch.to(torch.float32), torch.tensor([1.5, 30.0], dtype=torch.float64))
    assert found.dtype == torch.float32
    for image, source, sigma in zip(found, batch, (1.5, 30.0), strict=True):
        np.testing.assert_allclose(image.numpy(), scipy_blur(source, sigma, 4.0, "replicate"), rtol=0, atol=1e-6)


def test_gaussian_blur_leaves_its_input_alone() -> None:
    batch = images(2, 1, 20, 20)
    before = batch.clone()
    for sigmas in ([2.0, 2.0], [0.05, 2.0]):
        gaussian_blur(batch, torch.tensor(sigmas, dtype=torch.float64))
        assert torch.equal(batch, before)


def anchors(tall: int, wide: int) -> list[tuple[int, int]]:
    return sorted({(0, 0), (tall // 2, wide // 2), (tall - 1, wide - 1), (0, wide - 1)})


@borders
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (4, 4), (2, 5), (6, 1), (17, 17), (31, 24)])
def test_convolve_is_scipys_correlation(border: Border, shape: tuple[int, int]) -> None:
    """Kernels without symmetry, odd, even and taller than the 19×26 images, at the middle and at the corners.

    The last needs transforms of 49×49, one more than the quick size 48.
    """
    batch, kernels = images(2, 2, 19, 26), images(2, *shape, seed=1) - 0.4
    for anchor in anchors(*shape):
        found = convolve(batch, kernels, anchor, border)
        for image, source, kernel in zip(found, batch, kernels, strict=True):
            expected = scipy_correlate(source, kernel, anchor, border)
            np.testing.assert_allclose(image.numpy(), expected, rtol=0, atol=1e-11)


def test_one_kernel_serves_all_images() -> None:
    batch, kernel = images(3, 2, 19, 26), images(1, 4, 3, seed=1)
    found = convolve(batch, kernel, (2, 1), "reflect101")
    np.testing.assert_array_equal(found, convolve(batch, kernel.expand(3, -1, -1), (2, 1), "reflect101"))


def test_convolve_in_float32_is_as_exact_as_float32() -> None:
    batch, kernel = images(1, 3, 100, 90), images(1, 25, 25, seed=1)
    kernel /= kernel.sum()
    found = convolve(batch.float(), kernel.float(), (12, 12), "reflect101")
    assert found.dtype == torch.float32
    expected = scipy_correlate(batch[0], kernel[0], (12, 12), "reflect101")
    np.testing.assert_allclose(found[0].numpy(), expected, rtol=0, atol=2e-6)


def test_transform_sizes_are_the_next_quick_ones() -> None:
    """All products of 2, 3 and 5 that 16 divides, by enumeration."""
    powers = [2**a * 3**b * 5**c for a, b, c in itertools.product(range(4, 12), range(7), range(5))]
    for size in range(1, 1200):
        assert fourier.fast_size(size) == min(n for n in powers if n >= size)


def looped_lines(batch: Tensor, shifts: Tensor, weights: Tensor) -> NDArray[np.float64]:
    """Output by output, the coordinates clamped to the image."""
    count, channels, height, width = batch.shape
    out = np.zeros(batch.shape)
    for b, c, y, x in itertools.product(range(count), range(channels), range(height), range(width)):
        for (dy, dx), weight in zip(shifts[b].tolist(), weights[b].tolist(), strict=True):
            out[b, c, y, x] += weight * float(
                batch[b, c, min(max(y + dy, 0), height - 1), min(max(x + dx, 0), width - 1)]
            )
    return out


@st.composite
def lines(draw: st.DrawFn) -> tuple[int, list[list[tuple[int, int]]]]:
    """A reach, and for each of two images as many shifts within it, repeated ones among them."""
    reach, taps = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    shift = st.tuples(st.integers(-reach, reach), st.integers(-reach, reach))
    return reach, [draw(st.lists(shift, min_size=taps, max_size=taps)) for _ in range(2)]


@settings(max_examples=15, deadline=None)
@given(lines())
def test_line_blur_is_the_plain_loop(line: tuple[int, list[list[tuple[int, int]]]]) -> None:
    reach, moves = line
    shifts = torch.tensor(moves)
    batch, weights = images(2, 1, 6, 9), images(*shifts.shape[:2], seed=1)
    found = line_blur(batch, shifts, weights, reach=reach)
    np.testing.assert_allclose(found.numpy(), looped_lines(batch, shifts, weights), rtol=0, atol=1e-12)


def test_line_blur_by_hand() -> None:
    """Half of the pixel itself, and a quarter each of the second and the third to its right; the edge goes on."""
    row = torch.tensor([[[[0.0, 4.0, 8.0, 16.0]]]])
    found = line_blur(row, torch.tensor([[[0, 0], [0, 2], [0, 3]]]), torch.tensor([[0.5, 0.25, 0.25]]), reach=3)
    assert found.tolist() == [[[[0 + 2 + 4, 2 + 4 + 4, 4 + 4 + 4, 8 + 4 + 4]]]]


def test_taps_on_the_same_pixel_add_up() -> None:
    batch = images(1, 1, 8, 8)
    shifts = torch.tensor([[[1, 2], [1, 2], [0, 0], [1, 2]]])
    found = line_blur(batch, shifts, torch.tensor([[1.0, 2.0, 4.0, 8.0]], dtype=torch.float64), reach=2)
    merged = line_blur(
        batch, torch.tensor([[[1, 2], [0, 0]]]), torch.tensor([[11.0, 4.0]], dtype=torch.float64), reach=2
    )
    np.testing.assert_allclose(found.numpy(), merged.numpy(), rtol=0, atol=1e-13)


@pytest.mark.parametrize("reach", [3, 44])
def test_line_blur_equals_the_transform_a_gpu_takes(reach: int) -> None:
    """The kernel of every line drawn tap by tap, then correlated by FFT."""
    rng = np.random.default_rng(2)
    shifts = torch.from_numpy(rng.integers(-reach, reach + 1, (3, 20, 2)))
    batch, weights = images(3, 2, 30, 41), images(3, 20, seed=3)
    kernels = torch.zeros(3, 2 * reach + 1, 2 * reach + 1, dtype=torch.float64)
    for kernel, moves, share in zip(kernels, shifts.tolist(), weights.tolist(), strict=True):
        for (dy, dx), weight in zip(moves, share, strict=True):
            kernel[reach + dy, reach + dx] += weight
    found = line_blur(batch, shifts, weights, reach=reach)
    expected = convolve(batch, kernels, (reach, reach), "replicate")
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=0, atol=1e-11)


def test_line_blur_on_a_gpu(device: torch.device) -> None:
    batch, weights = images(3, 2, 30, 41).float(), images(3, 9, seed=3)
    steps = torch.arange(9)
    shifts = torch.stack([torch.stack([steps * a, steps * b], -1) for a, b in ((0, 1), (1, 0), (-1, 1))])
    expected = line_blur(batch, shifts, weights, reach=8)
    found = line_blur(batch.to(device), shifts, weights, reach=8)
    np.testing.assert_allclose(found.cpu().numpy(), expected.numpy(), rtol=0, atol=1e-5)


def test_tables_of_gaussians_have_a_row_for_each_image() -> None:
    sigma = torch.tensor([2.0, 0.3, 2.0, 1.7], dtype=torch.float64)
    weights, radii = gaussian_arrays(sigma.tolist(), 3.0)
    expected, reach = gaussian_taps(sigma, 3.0, weights.shape[1] - 1)
    assert np.array_equal(weights, expected.numpy())
    assert radii.tolist() == reach.tolist() == [6, 1, 6, 5]


@pytest.mark.parametrize("sigma", [[], [0.1], [1.9, 1.8], [0.1, 1.9]])
def test_all_are_near_where_each_is(sigma: list[float]) -> None:
    each = near_enough(np.array(sigma), 8, 30, truncate=4.0)
    assert all_near(sigma, 8, 30, truncate=4.0) == bool(each.all())
