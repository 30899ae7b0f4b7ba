"""ImageNet-P's sequences at 32, 64, 224 and 299 pixels: their settings, their lengths, and what frames are made of."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.types import Square
from blemish.corruptions.imagenet_p import sequences
from blemish.ops.pillow import squared
from pictures import pictures

PRESETS = ("cifar", "imagenet64", "imagenet", "inception")
INCEPTION = Square(299, 0.875)

# Read from the published generators (create_p/make_cifar_p.py, make_tinyimagenet_p.py, make_imagenet_p.py and
# make_imagenet_p_inception.py of hendrycks/robustness). For each preset: a number, or three, by difficulty.
SETTINGS = {
    ("gaussian_noise", "sigma"): ((0.02, 0.04, 0.06), (0.025, 0.05, 0.075), (0.03, 0.05, 0.08), (0.035, 0.055, 0.085)),
    ("shot_noise", "photons"): ((700, 400, 200), (500, 250, 125), (300, 120, 60), (250, 100, 50)),
    ("speckle_noise", "sigma"): ((0.05, 0.07, 0.1), (0.05, 0.1, 0.15), (0.05, 0.1, 0.15), (0.06, 0.11, 0.16)),
    ("motion_blur", "radius"): (6, 14, 10, 13),
    ("motion_blur", "sigma"): (1.8, 3, 3, 3),
    ("snow", "mean"): (0.05, 0.05, 0.05, 0.05),
    ("snow", "std"): (0.3, 0.28, 0.3, 0.3),
    ("snow", "zoom"): (2, 2, 3, 3),
    ("snow", "threshold"): (0.5, 0.5, 0.5, 0.5),
    ("snow", "image_weight"): (0.85, 0.85, 0.85, 0.85),
    ("snow", "radius"): (10, 10, 14, 14),
    ("snow", "sigma"): (2, 2.5, 4, 4),
    ("gaussian_blur", "truncate"): (7, 7, 6, 6),
    ("spatter", "mean"): (0.6, 0.6, 0.65, 0.65),
    ("spatter", "std"): (0.265, 0.25, 0.27, 0.3),
    ("spatter", "sigma"): (1.75, 1.75, 3.7, 4),
    ("spatter", "threshold"): (0.7, 0.7, 0.69, 0.69),
    ("spatter", "strength"): (0.6, 0.6, 0.6, 0.6),
}

# From the same: the quantity that changes with the frame, in frame 0 and in frame 1.
FIRST_AND_SECOND = {
    "motion_blur": ((-180, -171), (-150, -145), (-120, -116), (-120, -116)),
    "zoom_blur": ((1, 1.004),) * 4,
    "snow": ((-150, -146),) * 4,
    "brightness": ((-0.225, -0.21), (-0.3, -0.28), (-0.3, -0.28), (-0.3, -0.28)),
    "translate": ((-7, -6), (-15, -14), (-20, -19), (-20, -19)),
    "rotate": ((-15, -14),) * 4,
    "tilt": ((-11.25, -10.5), (-15, -14), (-15, -14), (-15, -14)),
    "scale": ((0.7, 0.72), (0.4, 0.425), (0.4, 0.425), (0.4, 0.425)),
    "gaussian_blur": ((0.3, 0.315), (0.35, 0.364), (0.25, 0.285), (0.35, 0.385)),
    "shear": ((-15, -14),) * 4,
}

# From the same: numbers of frames that are not 31.
LENGTHS = {("translate", "cifar"): 16, ("translate", "imagenet"): 41, ("translate", "inception"): 41}
LENGTHS |= {("motion_blur", "cifar"): 21}


@pytest.mark.parametrize(("name", "setting"), SETTINGS)
def test_published_settings(name: str, setting: str) -> None:
    for preset, value in zip(PRESETS, SETTINGS[name, setting], strict=True):
        expected = value if isinstance(value, tuple) else (value, value, value)
        assert tuple(row[setting] for row in sequences[f"p:{name}"].presets[preset].rows) == expected


@pytest.mark.parametrize("name", FIRST_AND_SECOND)
def test_published_steps(name: str) -> None:
    for preset, ends in zip(PRESETS, FIRST_AND_SECOND[name], strict=True):
        for row in sequences[f"p:{name}"].presets[preset].rows:
            found = [row.get("base", 0) + row["step"] * (index - row["origin"]) for index in (0, 1)]
            assert found == pytest.approx(ends)


def test_numbers_of_frames() -> None:
    for name, sequence in sequences.items():
        for preset in PRESETS:
            assert sequence.length(preset) == LENGTHS.get((name.removeprefix("p:"), preset), 31)
    assert len(sequences["p:motion_blur"].pairs(2, preset="cifar")) == 21 - 2


def test_small_water_runs_down_by_four_fifths() -> None:
    for preset in ("cifar", "imagenet64"):
        row = sequences["p:spatter"].presets[preset].rows[0]
        shares = [row[name] for name in ("from_two_above", "from_above", "stay", "from_below")]
        assert shares == [0, 0.8, 0.2, 0]  # columns convolved with (0.2, 0.8), NumPy's mode "same"


def test_the_preset_is_the_nearest_in_size() -> None:
    sequence = sequences["p:tilt"]
    sides = {32: "cifar", 48: "cifar", 49: "imagenet64", 64: "imagenet64", 224: "imagenet", 256: "imagenet"}
    for side, preset in {**sides, 262: "inception", 375: "inception"}.items():
        assert sequence.preset(side, side + 5) == preset
    assert sequence.preset(375, 500, Square(64)) == "imagenet64"
    assert sequence.frame(pictures(1, 1, 32, 32), 0).shape == (1, 1, 32, 32)
    assert sequence.frame(pictures(1, 1, 320, 340), 0).shape == (1, 1, 299, 299)


def as_picture(image: Tensor) -> Image.Image:
    return Image.fromarray(image.permute(1, 2, 0).contiguous().numpy())


def as_tensor(picture: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1)


def pillow_inception(picture: Image.Image) -> Tensor:
    """The middle 87.5 % of each side at 299 pixels, by Pillow."""
    width, height = picture.size
    wide, tall = int(width * 0.875), int(height * 0.875)
    left, top = round((width - wide) / 2), round((height - tall) / 2)
    middle = picture.crop((left, top, left + wide, top + tall))
    return as_tensor(middle.resize((299, 299), Image.Resampling.BILINEAR))


def turned(picture: Image.Image, degrees: float) -> Image.Image:
    """Pillow's affine transform about (w/2 + ½, h/2 + ½), as torchvision 0.2 rotated."""
    angle = math.radians(degrees)
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = picture.width / 2 + 0.5, picture.height / 2 + 0.5
    matrix = (cos, sin, x - cos * x - sin * y, -sin, cos, y + sin * x - cos * y)
    return picture.transform(picture.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)


class TestSquares:
    """At 299 pixels, what moves the image is made of all of it, everything else of the square."""

    def test_rotation_comes_before_the_square(self) -> None:
        images = pictures(1, 3, 330, 420)
        expected = pillow_inception(turned(as_picture(images[0]), -15))
        found = sequences["p:rotate"].frame(images, 0, preset="inception", crop=INCEPTION)[0]
        difference = (found.int() - expected.int()).abs()
        assert difference.max() <= 1  # float32 positions against Pillow's double ones
        assert (difference == 0).double().mean() > 0.98

    def test_translation_comes_before_the_square(self) -> None:
        images = pictures(1, 3, 330, 420)
        moved = torch.zeros_like(images)
        moved[..., 20:] = images[..., :-20]
        found = sequences["p:translate"].frame(images, 40, preset="inception", crop=INCEPTION)
        assert torch.equal(found[0], pillow_inception(as_picture(moved[0])))

    def test_others_are_made_of_the_square(self) -> None:
        images = pictures(2, 3, 330, 420)
        square = squared(images, INCEPTION)
        for name, sequence in sequences.items():
            if not sequence.moves:
                found = sequence.frame(images, 3, preset="inception", crop=INCEPTION)
                assert torch.equal(found, sequence.frame(square, 3, preset="inception")), name

    @pytest.mark.parametrize("name", ["p:rotate", "p:tilt", "p:shear", "p:translate", "p:scale", "p:brightness"])
    def test_the_still_frame_is_the_square_bit_for_bit(self, name: str) -> None:
        images = pictures(2, 3, 330, 420)
        index = {"p:translate": 20, "p:scale": 24}.get(name, 15)
        frame = sequences[name].frame(images, index, preset="inception", crop=INCEPTION)
        assert torch.equal(frame, squared(images, INCEPTION))

    def test_single_frames_and_batches_agree(self) -> None:
        images = pictures(3, 1, 40, 60)
        for name in ("p:tilt", "p:snow"):
            frames = list(sequences[name].frames(images, seed=3, ids=[4, 5, 6], crop=Square(32, 0.8)))
            alone = sequences[name].frame(images[1:2], 7, seed=3, ids=[5], crop=Square(32, 0.8))
            assert torch.equal(frames[7][1:2], alone)
            assert all(frame.shape == (3, 1, 32, 32) and frame.is_contiguous() for frame in frames)

    @pytest.mark.parametrize(
        ("square", "message"),
        [
            (Square(4), "a square of 4×4 pixels; expected at least 8×8"),
            (Square(32, 0), "the middle 0 of each side; expected a share above 0 and up to 1"),
            (Square(32, 1.5), "the middle 1.5 of each side"),
        ],
    )
    def test_squares_that_mean_nothing(self, square: Square, message: str) -> None:
        for name in ("p:tilt", "p:snow"):
            with pytest.raises(InputError, match=message):
                sequences[name].frames(pictures(1, 3, 40, 40), crop=square)
