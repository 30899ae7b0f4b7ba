"""Twenty of Syn2Nat's candidates against the recorded statistics of the originals, and what each promises by itself.

The recordings hold, for two photographs, the distribution of simple statistics over 60 draws of the original (mean,
standard deviation, 5 %, 50 % and 95 %). For 60 draws of ours the median of every statistic must lie in the original's
5–95 % band, and its standard deviation within a factor of two of the original's. There are no exceptions: `EXCEPTIONS`
is empty, and a candidate that must differ would be listed there with its reason.

Two settings follow the recordings where the written ones leave them open. The multiplier of multiplicative_noise is
one per pixel, not one per channel, which would give six tenths of the recorded spread of the mean. The drops of
random_rain always slant by ten pixels, to the right: a slant per image would give at least twice the recorded spread
of the gradient, and a median outside its band.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import blemish
from blemish.corruptions.base import no_draw
from blemish.corruptions.syn2nat.colour import COLOURS
from blemish.corruptions.syn2nat.noise import NOISES
from blemish.corruptions.syn2nat.weather import WEATHER
from picture_statistics import statistics
from pictures import pictures

UNITS = {unit.name.removeprefix("syn2nat:"): unit for unit in (*COLOURS, *NOISES, *WEATHER)}
IMAGES = {"image0": "imagenet_c_224.npz", "image1": "ccc_224.npz"}
DRAWS = 60

# Recorded numbers are rounded to three decimals, and the bands of deterministic candidates have no width.
ROUNDED = 6e-4
SPREAD = 2.0

# (candidate, image, statistic) to the reason why it differs.
EXCEPTIONS: dict[tuple[str, str, str], str] = {}


def recorded(recordings: Path, name: str, image: str) -> dict[str, list[float]]:
    """The statistics of an original; the recordings have the names of its classes."""
    candidates = json.loads((recordings / "syn2nat_statistics.json").read_text())["candidates"]
    by_name = {key.lower(): value for key, value in candidates.items()}
    numbers: dict[str, list[float]] = by_name[{"invert": "invertimg"}.get(name, name.replace("_", ""))][image]
    return numbers


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("name", UNITS)
def test_statistics_are_those_of_the_originals(recordings: Path, name: str, image: str) -> None:
    if not (recordings / IMAGES[image]).exists():
        pytest.skip("this picture is not in the small part of the recordings (tests/golden)")
    expected = recorded(recordings, name, image)
    with np.load(recordings / IMAGES[image]) as arrays:
        clean = torch.from_numpy(arrays["image|0"]).permute(2, 0, 1)
    found = statistics(UNITS[name](clean.expand(DRAWS, -1, -1, -1), severity=5, seed=1), clean)
    assert set(expected) == set(found)
    wrong = []
    for statistic, (_, deviation, low, _, high) in expected.items():
        ours, spread = float(found[statistic].median()), float(found[statistic].std(unbiased=False))
        near = low - ROUNDED <= ours <= high + ROUNDED
        alike = deviation / SPREAD - ROUNDED <= spread <= deviation * SPREAD + ROUNDED
        if not (near and alike) and (name, image, statistic) not in EXCEPTIONS:
            wrong.append(f"{statistic}: {ours:.3f} ± {spread:.3f}; expected {low}–{high} ± {deviation}")
    assert not wrong, "\n".join(wrong)


def test_there_are_twenty() -> None:
    assert len(UNITS) == 20
    assert {unit.family for unit in UNITS.values()} == {"syn2nat"}
    assert all(unit.name.startswith("syn2nat:") for unit in UNITS.values())


@pytest.mark.parametrize("name", UNITS)
def test_little_severity_changes_little(name: str) -> None:
    """Lower severities lead to the identity, or are refused."""
    images = pictures(8, 3, 64, 64)
    unit = UNITS[name]
    if unit.only_severity is not None:
        with pytest.raises(blemish.InputError, match="severity 5 only"):
            unit(images, severity=4)
        return
    changes = [(unit(images, severity=s).double() - images.double()).abs().mean() for s in (0.02, 1, 2.5, 5)]
    assert changes == sorted(changes)
    assert changes[0] < 2


@pytest.mark.parametrize("name", UNITS)
def test_gray_images_stay_gray_pictures(name: str) -> None:
    """One channel is treated as three equal ones would be, as far as equal channels stay equal."""
    gray = pictures(4, 1, 48, 40)
    unit = UNITS[name]
    one = unit(gray, severity=5).int()
    three = unit(gray.expand(-1, 3, -1, -1), severity=5).int()
    if name in {"color_jitter", "gauss_noise", "hue_saturation_value", "rgb_shift", "to_sepia", "random_sun_flare"}:
        assert one.float().std() > 0
    else:
        assert (three - one).abs().max() <= 1


def test_sepia_of_gray_is_the_luminance_of_sepia() -> None:
    gray = pictures(2, 1, 16, 16)
    toned = UNITS["to_sepia"](gray.expand(-1, 3, -1, -1), severity=5).double()
    weights = torch.tensor([0.299, 0.587, 0.114], dtype=torch.float64).view(1, 3, 1, 1)
    luminance = (toned * weights).sum(1, keepdim=True)
    assert (UNITS["to_sepia"](gray, severity=5) - luminance).abs().max() <= 1


@pytest.mark.parametrize("name", [name for name, unit in UNITS.items() if unit.draw is no_draw])
def test_deterministic_candidates_follow_their_definition(name: str) -> None:
    levels = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).expand(1, 3, -1, -1)
    values = levels.long()
    expected = {
        "invert": 255 - values,
        "posterize": values // 64 * 64,
        "solarize": torch.where(values < 200, values, 255 - values),
    }
    if name == "to_sepia":
        red = UNITS[name](levels, severity=5)[:, 0].double()
        assert (red - (values[:, 0] * 1.351).clamp(max=255)).abs().max() < 1
    else:
        assert torch.equal(UNITS[name](levels, severity=5).long(), expected[name])


@pytest.mark.parametrize("name", ["random_fog", "random_rain", "random_shadow", "random_sun_flare"])
def test_drawings_scale_with_the_image(name: str) -> None:
    """An image of another size changes as much, relative to its size: lengths are shares of its side."""
    unit = UNITS[name]
    changes = []
    for side in (96, 224, 448):
        images = torch.full((24, 3, side, side), 90, dtype=torch.uint8)
        changes.append((unit(images, severity=5).double() - images.double()).abs().mean())
    assert max(changes) < 1.25 * min(changes)
