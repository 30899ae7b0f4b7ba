"""The stimuli of the comparison with humans: against their formulas in NumPy and SciPy, level by level."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import ndimage
from torch import Tensor

import blemish
from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.human import HUMAN, frequencies, pixels
from blemish.corruptions.human.published import SEVERITIES, arrays
from blemish.corruptions.severity import SeverityTable
from pictures import pictures

# The levels of the experiments (Geirhos et al., 2018 and 2021), without the unchanged image.
LEVELS: dict[str, tuple[str, tuple[float, ...]]] = {
    "contrast": ("contrast", (0.5, 0.3, 0.15, 0.1, 0.05, 0.03, 0.01)),
    "uniform_noise": ("width", (0.03, 0.05, 0.1, 0.2, 0.35, 0.6, 0.9)),
    "low_pass": ("sigma", (1, 3, 5, 7, 10, 15, 40)),
    "high_pass": ("sigma", (3, 1.5, 1, 0.7, 0.55, 0.45, 0.4)),
    "phase_noise": ("degrees", (30, 60, 90, 120, 150, 180)),
    "rotation": ("quarters", (1, 2, 3)),
}
GROUND = 0.4423
SIZES = [(224, 224), (64, 97), (33, 40)]


def gray(images: Tensor) -> NDArray[np.float64]:
    """In 0 … 1, (B, H, W)."""
    r, g, b = images.double().numpy().transpose(1, 0, 2, 3) / 255
    return 0.2125 * r + 0.7154 * g + 0.0721 * b


def check(out: Tensor, expected: NDArray[np.float64]) -> None:
    """The same in all channels, and the formula's level; one more or less where rounding decides."""
    assert torch.equal(out[:, 0], out[:, 1])
    assert torch.equal(out[:, 0], out[:, 2])
    levels = np.floor(np.clip(expected, 0, 1) * 255 + 1e-4)
    difference = np.abs(out[:, 0].double().numpy() - levels)
    assert difference.max() <= 1
    assert (difference == 0).mean() > 0.99


@pytest.mark.parametrize("name", LEVELS)
def test_published_severities_are_the_published_levels(name: str) -> None:
    parameter, levels = LEVELS[name]
    corruption = blemish.catalog[f"human:{name}"]
    assert len(corruption.severities) == len(levels)
    found = corruption.table.at([float(severity) for severity in corruption.severities], "any")
    assert found[parameter].tolist() == pytest.approx(levels, abs=1e-15)
    assert found["opacity"].tolist() == [1] * len(levels)


def test_whole_severities_are_levels() -> None:
    assert all({1, 2, 3, 4, 5} <= {*SEVERITIES[count]} for count in (6, 7))
    assert [corruption.severities for corruption in HUMAN if len(corruption.severities) == 1] == [(5,)] * 3


def test_tables_of_halves() -> None:
    table = SeverityTable.halves(width=[float(i * i) for i in range(11)])
    assert table.at([0, 0.5, 2.25, 5], "any")["width"].tolist() == [0, 1, 20.5, 100]


@pytest.mark.parametrize("severity", SEVERITIES[7])
def test_contrast(severity: float) -> None:
    images = pictures(2, 3, 40, 30)
    factor = dict(zip(SEVERITIES[7], LEVELS["contrast"][1], strict=True))[severity]
    check(blemish.corrupt(images, "human:contrast", severity=severity), (1 - factor) / 2 + factor * gray(images))


def test_colour() -> None:
    images = pictures(2, 3, 40, 30)
    check(blemish.corrupt(images, "human:colour", severity=5), gray(images))


@pytest.mark.parametrize("severity", [1, 3.5, 5])
def test_uniform_noise(severity: float) -> None:
    """On low contrast, within the width, evenly spread."""
    images = pictures(2, 3, 96, 96)
    width = dict(zip(SEVERITIES[7], LEVELS["uniform_noise"][1], strict=True))[severity]
    out = blemish.corrupt(images, "human:uniform_noise", severity=severity)
    plain = 0.35 + 0.3 * gray(images)
    noise = out[:, 0].double().numpy() / 255 - plain
    seen = (plain - width > 0.01) & (plain + width < 0.99)
    if seen.any():
        assert np.abs(noise[seen]).max() <= width + 1 / 255
        assert noise[seen].std() == pytest.approx(width / np.sqrt(3), rel=0.05, abs=0.002)
    clipped = ((out == 0) | (out == 255)).double().mean()
    expected = np.clip((width - plain) / (2 * width), 0, 1) + np.clip((width - (1 - plain)) / (2 * width), 0, 1)
    assert float(clipped) == pytest.approx(expected.mean(), abs=0.02)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_low_pass_and_high_pass(severity: int, size: tuple[int, int]) -> None:
    """The blur scales with the image; what is left of fine detail does not."""
    images = pictures(2, 3, *size)
    plain = gray(images)
    sigma = dict(zip(SEVERITIES[7], LEVELS["low_pass"][1], strict=True))[severity] * min(size) / 224
    blurred = [ndimage.gaussian_filter(image, sigma, mode="constant", cval=GROUND) for image in plain]
    check(blemish.corrupt(images, "human:low_pass", severity=severity), np.stack(blurred))
    sigma = dict(zip(SEVERITIES[7], LEVELS["high_pass"][1], strict=True))[severity]
    rest = np.stack([image - ndimage.gaussian_filter(image, sigma, mode="constant", cval=GROUND) for image in plain])
    expected = rest + (GROUND - rest.mean((1, 2), keepdims=True))
    check(blemish.corrupt(images, "human:high_pass", severity=severity), expected)


@pytest.mark.parametrize("size", [(32, 32), (33, 40), (31, 57)])
def test_phase_noise_is_real_and_keeps_amplitudes(size: tuple[int, int]) -> None:
    """Of an image of so little contrast that nothing is clipped."""
    plain = torch.from_numpy(0.5 + 0.02 * np.random.default_rng(0).standard_normal((3, 1, *size))).float()
    corruption = blemish.catalog["human:phase_noise"]
    params = corruption.table.at([5.0] * 3, "any")
    rng = CounterRng(0, torch.arange(3), "test")
    shape = Shape(1, *size)
    draw = corruption.draw(shape, params, rng)
    out = corruption.apply(plain.clone(), params, draw)
    before, after = (np.fft.fft2(x.double().numpy()) for x in (plain, out))
    np.testing.assert_allclose(np.abs(after), np.abs(before), atol=1e-4)
    turn = np.angle(after / before)
    kept = np.zeros(size, bool)
    kept[0, 0] = True
    for axis, side in enumerate(size):
        if side % 2 == 0:
            kept[(slice(None),) * axis + (side // 2,)] = True
    assert np.abs(turn[..., kept]).max() < 1e-2
    rest = turn[..., ~kept]
    assert rest.std() == pytest.approx(np.pi / np.sqrt(3), rel=0.05)


def test_power_equalisation() -> None:
    images = pictures(2, 3, 224, 224)
    spectrum = np.fft.rfft2(gray(images))
    phases = np.exp(1j * np.angle(spectrum))
    expected = np.fft.irfft2(phases * arrays().amplitude.numpy(), s=(224, 224))
    check(blemish.corrupt(images, "human:power_equalisation", severity=5), expected)


@pytest.mark.parametrize("size", SIZES[1:])
def test_mean_amplitudes_at_other_sizes(size: tuple[int, int]) -> None:
    """The mean of the image is that of the published spectrum, and low frequencies hold about as much contrast."""
    height, width = size
    known = arrays().amplitude.numpy() / 224**2
    found = frequencies._mean_amplitude(height, width, torch.device("cpu")).numpy() / (height * width)
    assert found[0, 0] == pytest.approx(known[0, 0], rel=1e-12)

    def contrast(amplitude: NDArray[np.float64], down: NDArray[np.float64], right: NDArray[np.float64]) -> float:
        low = (np.hypot(down[:, None], right) < 12) & (np.hypot(down[:, None], right) > 1.5)
        return float(np.sqrt((amplitude[low] ** 2).sum()))

    side = min(size)
    ours = contrast(found, np.fft.fftfreq(height) * side, np.arange(width // 2 + 1) * side / width)
    assert ours == pytest.approx(contrast(known, np.fft.fftfreq(224) * 224, np.arange(113.0)), rel=0.15)


def test_even_images_have_no_phases() -> None:
    """A gray ground has amplitudes of rounding errors, whose phases must not decide about pixels."""
    images = torch.full((1, 3, 48, 48), 77, dtype=torch.uint8)
    out = blemish.corrupt(images, "human:power_equalisation", severity=5)
    amplitude = frequencies._mean_amplitude(48, 48, torch.device("cpu")).numpy()
    check(out, np.fft.irfft2(amplitude, s=(48, 48))[None])


@pytest.mark.parametrize(("severity", "quarters"), [(1, 1), (3, 2), (5, 3)])
def test_rotation(severity: int, quarters: int) -> None:
    images = pictures(2, 3, 40, 40)
    check(blemish.corrupt(images, "human:rotation", severity=severity), np.rot90(gray(images), quarters, (1, 2)))


def test_rotation_of_oblong_images() -> None:
    images = pictures(1, 3, 20, 33)
    upright = np.rot90(gray(images), 1, (1, 2))  # 33 × 20
    expected = np.full((1, 20, 33), GROUND)
    expected[:, :, 6:26] = upright[:, 7:27]
    check(blemish.corrupt(images, "human:rotation", severity=1), expected)


def opponent(levels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Luminance, red against green and blue against yellow of levels (…, 3), as the experiment defines them."""
    cones = arrays().light.numpy()[levels] @ np.array(pixels._CONES).T - np.array(pixels._WHITE)
    return cones @ np.array(pixels._OPPONENT).T


def test_false_colour_changes_signs() -> None:
    colours = np.stack(np.meshgrid(*[np.arange(100, 180, 10)] * 3), axis=-1).reshape(1, 32, 16, 3).astype(np.uint8)
    images = torch.from_numpy(colours).permute(0, 3, 1, 2).contiguous()
    out = blemish.corrupt(images, "human:false_colour", severity=5)
    before, after = opponent(colours), opponent(out.permute(0, 2, 3, 1).numpy())
    inside = ((out > 0) & (out < 255)).all(1).numpy()
    assert inside.mean() > 0.5
    # A level near white is up to a hundredth of all light.
    np.testing.assert_allclose(after[inside], (before * [1, -1, -1])[inside], atol=0.06)
    again = blemish.corrupt(out, "human:false_colour", severity=5).int() - images.int()
    assert again.abs().amax(1)[torch.from_numpy(inside)].max() <= 3


def test_false_colour_keeps_grays() -> None:
    images = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    assert torch.equal(blemish.corrupt(images, "human:false_colour", severity=5), images)
    colour = images.expand(-1, 3, -1, -1)
    assert (blemish.corrupt(colour, "human:false_colour", severity=5).int() - colour.int()).abs().max() <= 1
