"""SSIM and MS-SSIM: against the formula written down again, against scikit-image, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor

from blemish.core.errors import InputError
from blemish.ops.similarity import SCALE_WEIGHTS, ms_ssim, scales_of, ssim
from foreign import foreign

C1, C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


def pair(height: int, width: int, channels: int, kind: str) -> tuple[Tensor, Tensor]:
    """A pattern of waves, and the same with noise, brighter, or shifted; uint8 (1, C, H, W)."""
    y, x = np.mgrid[:height, :width]
    first = 127 + 100 * np.sin(x / 7 + np.arange(channels)[:, None, None]) * np.cos(y / 5)
    noise = np.random.default_rng(0).normal(0, 1, first.shape)
    second = {
        "little": first + 2 * noise,
        "much": first + 40 * noise,
        "brighter": first + 30,
        "turned": np.roll(first, 3, axis=2),
    }[kind]
    one, other = (torch.from_numpy(values.clip(0, 255).astype(np.uint8))[None] for values in (first, second))
    return one, other


def by_scipy(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """The index and its structure of one channel, in levels: SciPy's Gaussian, cut to the places inside the image."""

    def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return ndimage.gaussian_filter(values, 1.5, radius=5)[5:-5, 5:-5]

    ma, mb = mean(a), mean(b)
    va, vb, cov = mean(a * a) - ma**2, mean(b * b) - mb**2, mean(a * b) - ma * mb
    structure = (2 * cov + C2) / (va + vb + C2)
    return float(((2 * ma * mb + C1) / (ma**2 + mb**2 + C1) * structure).mean()), float(structure.mean())


def ms_by_scipy(a: NDArray[np.float64], b: NDArray[np.float64], count: int) -> float:
    total = 1 if count == 5 else sum(SCALE_WEIGHTS[:count])
    product = 1.0
    for scale in range(count):
        whole, structure = by_scipy(a, b)
        product *= max(0.0, whole if scale == count - 1 else structure) ** (SCALE_WEIGHTS[scale] / total)
        a, b = (v[: len(v) // 2 * 2, : v.shape[1] // 2 * 2] for v in (a, b))
        a, b = ((v[::2, ::2] + v[1::2, ::2] + v[::2, 1::2] + v[1::2, 1::2]) / 4 for v in (a, b))
    return product


@pytest.mark.parametrize("kind", ["little", "much", "brighter", "turned"])
@pytest.mark.parametrize(("height", "width", "channels", "scales"), [(180, 190, 3, 5), (47, 33, 3, 2), (11, 30, 1, 1)])
def test_formulas(height: int, width: int, channels: int, scales: int, kind: str) -> None:
    one, other = pair(height, width, channels, kind)
    planes = [(a.double().numpy(), b.double().numpy()) for a, b in zip(one[0], other[0], strict=True)]
    assert scales_of(one) == scales
    assert float(ssim(one, other)) == pytest.approx(np.mean([by_scipy(a, b)[0] for a, b in planes]), abs=1e-5)
    multi = np.mean([ms_by_scipy(a, b, scales) for a, b in planes])
    assert float(ms_ssim(one, other)) == pytest.approx(multi, abs=1e-5)


def test_recorded_values_of_scikit_image() -> None:
    """structural_similarity of scikit-image 0.26.0 with gaussian_weights, sigma 1.5, use_sample_covariance=False."""
    recorded = {"little": 0.9923655, "much": 0.3182866, "brighter": 0.9721110}
    for kind, value in recorded.items():
        assert float(ssim(*pair(32, 40, 3, kind))) == pytest.approx(value, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["little", "much", "brighter", "turned"])
def test_scikit_image(kind: str) -> None:
    metrics = foreign("skimage.metrics")
    one, other = pair(64, 51, 3, kind)
    theirs = metrics.structural_similarity(
        *(images[0].permute(1, 2, 0).numpy() for images in (one, other)),
        channel_axis=2,
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
        data_range=255,
    )
    assert float(ssim(one, other)) == pytest.approx(theirs, abs=1e-6)


def test_flat_images_by_hand() -> None:
    """Without structure SSIM is (2ab + C₁)/(a² + b² + C₁): levels 100 and 200 give .8001, with C₁ = 6.5025."""
    one, other = (torch.full((1, 1, 20, 20), level, dtype=torch.uint8) for level in (100, 200))
    assert float(ssim(one, other)) == pytest.approx((2 * 100 * 200 + C1) / (100**2 + 200**2 + C1), abs=5e-5)


def test_equal_images_and_negatives() -> None:
    one, _ = pair(64, 64, 3, "much")
    assert float(ssim(one, one)) == pytest.approx(1, abs=1e-6)
    assert float(ms_ssim(one, one)) == pytest.approx(1, abs=1e-6)
    negative = 255 - one
    assert float(ssim(one, negative)) < 0
    assert float(ms_ssim(one, negative)) == 0  # structure that is turned around counts as none


def test_each_pair_by_itself() -> None:
    pairs = [pair(64, 64, 3, kind) for kind in ("little", "much")]
    together = [torch.cat(images) for images in zip(*pairs, strict=True)]
    for measure in (ssim, ms_ssim):
        alone = torch.cat([measure(*images) for images in pairs])
        torch.testing.assert_close(measure(*together), alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((1, 3, 10, 20), (1, 3, 10, 20)), "10×20 pixels; SSIM needs at least 11×11"),
        (((1, 3, 20, 20), (2, 3, 20, 20)), "expected the same"),
        (((3, 20, 20), (3, 20, 20)), r"expected uint8 \(B, C, H, W\)"),
    ],
)
def test_refusals(shapes: tuple[tuple[int, ...], tuple[int, ...]], message: str) -> None:
    one, other = (torch.zeros(shape, dtype=torch.uint8) for shape in shapes)
    with pytest.raises(InputError, match=message):
        ssim(one, other)
