"""The ImageNet-NOC corruptions do what their descriptions say, by the published amounts."""

from __future__ import annotations

import math
import pickle

import pytest
import torch

from blemish.corruptions.base import no_draw
from blemish.corruptions.noc import NOC
from blemish.corruptions.noc import texture as noc_texture
from blemish.ops.hue import turn_hue
from noc_units import PUBLISHED, UNITS, flat, one_pixel
from pictures import pictures


def test_there_are_23_and_they_survive_pickling() -> None:
    assert list(UNITS) == list(PUBLISHED)
    assert all(unit.name == f"noc:{name}" and unit.family == "noc" for name, unit in UNITS.items())
    assert [unit.name for unit in pickle.loads(pickle.dumps(NOC))] == [unit.name for unit in NOC]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_bounds(name: str) -> None:
    table = UNITS[name].table
    ((_, values),) = table.at([0, 1, 2, 3, 4, 5], table.preset(224, 224)).items()
    lower, upper = PUBLISHED[name]
    assert (values[1].item(), values[5].item()) == (lower, upper)
    even = torch.linspace(lower, upper, 5, dtype=torch.float64)
    tolerance = 0.5 if table.rounded else 1e-12
    torch.testing.assert_close(values[1:], even, rtol=0, atol=tolerance)
    identity = {"quantization": 256, "thumbnail_resize": 1, "pixelate": 1}.get(name, 0)
    assert values[0].item() == identity
    assert math.copysign(1, lower - identity) == math.copysign(1, upper - lower) or name == "quantization"


def test_more_severe_is_more_changed() -> None:
    images = pictures(4, 3, 224, 224)
    for unit in NOC:
        change = [(unit(images, severity=s).double() - images).abs().mean().item() for s in (1, 3, 5)]
        assert change[0] < change[1] < change[2], unit.name


# Light and colour


def test_brightness_goes_both_ways_by_the_same_amount() -> None:
    out = UNITS["brightness"](flat(128 / 255, count=40), severity=1)
    assert set(out.unique().tolist()) == {128 - 41, 128 + 40}  # 0.16 · 255 = 40.8, truncated after the sum
    assert all(len(image.unique()) == 1 for image in out)


def test_backlight_splits_either_way_and_lights_either_side() -> None:
    out = UNITS["backlight"](flat(128 / 255, count=60, height=40, width=50), severity=1)
    kinds = set()
    for image in out:
        top, bottom = image[0, 0, 0].item(), image[0, -1, 0].item()
        assert sorted(image.unique().tolist()) == [99, 156]  # 128 ∓ 28.05
        upright = top == bottom
        brightened = (image[0] == 156).double().mean(0 if upright else 1)
        assert set(brightened.unique().tolist()) == {0.0, 1.0}  # a straight line across
        first = (image[0] == image[0, 0, 0]).double().mean().item()
        assert 0.28 < first < 0.72
        kinds.add((upright, top == 156))
    assert len(kinds) == 4


def test_contrast_keeps_one_mean_for_all_channels() -> None:
    images = torch.cat([flat(v, channels=1) for v in (0.2, 0.4, 0.6)], dim=1)
    out = UNITS["contrast"](images, severity=5).double().mean((0, 2, 3)) / 255
    expected = torch.tensor([0.4 + 0.26 * (v - 0.4) for v in (0.2, 0.4, 0.6)], dtype=torch.float64)
    torch.testing.assert_close(out, expected, rtol=0, atol=1 / 255)


def test_color_distortion_raises_one_channel() -> None:
    out = UNITS["color_distortion"](flat(100 / 255, count=40), severity=5)
    raised = (out != 100).all(-1).all(-1)
    assert (raised.sum(1) == 1).all()
    assert raised.any(0).all()
    assert out[raised].unique().tolist() == [202]


def test_gray_images_have_no_colour_to_lose() -> None:
    images = pictures(30, 1, 32, 32)
    assert torch.equal(UNITS["hue"](images, severity=5), images)
    assert torch.equal(UNITS["gray_scale"](images, severity=5), images)
    # Color distortion: the luminance of what happens to the image with three equal channels.
    colour = UNITS["color_distortion"](images.expand(-1, 3, -1, -1), severity=5).double()
    expected = 0.299 * colour[:, :1] + 0.587 * colour[:, 1:2] + 0.114 * colour[:, 2:]
    assert (UNITS["color_distortion"](images, severity=5) - expected).abs().max() <= 1


def test_gray_scale_ends_in_luminance() -> None:
    images = pictures(2, 3, 32, 32)
    out = UNITS["gray_scale"](images, severity=5).double()
    luminance = 0.299 * images[:, 0].double() + 0.587 * images[:, 1] + 0.114 * images[:, 2]
    assert (out.amax(1) - out.amin(1)).max() <= 1
    assert (out[:, 0] - luminance).abs().max() <= 1


def test_hue_is_cyclic() -> None:
    images = pictures(2, 3, 16, 16).float() / 255
    turns = torch.tensor([0.3, -0.4]).view(-1, 1, 1, 1)
    for back in (-turns, 1 - turns):
        torch.testing.assert_close(turn_hue(turn_hue(images, turns), back), images, rtol=0, atol=1e-5)
    red, yellow, cyan = ([1.0, 0.2, 0.2], [1.0, 1.0, 0.2], [0.2, 1.0, 1.0])
    start = torch.tensor([red, red]).view(2, 3, 1, 1)
    out = turn_hue(start, torch.tensor([1 / 6, 0.5]).view(-1, 1, 1, 1)).view(2, 3)
    torch.testing.assert_close(out, torch.tensor([yellow, cyan]))


def test_hue_turns_both_ways_and_keeps_value_and_grays() -> None:
    red = torch.tensor([200, 40, 40], dtype=torch.uint8).view(1, 3, 1, 1).expand(40, 3, 8, 8).contiguous()
    out = UNITS["hue"](red, severity=1)
    # 0.05 turns are 0.3 of the way from red towards yellow, or towards magenta: 40 + 0.3 · 160.
    assert {tuple(image[:, 0, 0].tolist()) for image in out} == {(200, 88, 40), (200, 40, 88)}
    gray = flat(0.5, height=8, width=8)
    assert torch.equal(UNITS["hue"](gray, severity=5), gray)


# Detail


def test_every_number_of_levels_is_equally_likely() -> None:
    """As the release draws them: 9 to 4 levels, each for a sixth of the severities from 1 to 5."""
    drawn = UNITS["quantization"].table.at(torch.linspace(1, 5, 6001)[:-1].tolist(), "any")
    kinds, counts = noc_texture._whole_levels(drawn["levels"]).unique(return_counts=True)
    assert kinds.tolist() == [4, 5, 6, 7, 8, 9]
    assert (counts - 1000).abs().max() <= 1


@pytest.mark.parametrize(("severity", "levels"), [(1, 9), (1.6, 9), (3.4, 6), (4.4, 4), (5, 4)])
def test_quantization_leaves_that_many_levels(severity: float, levels: int) -> None:
    ramp = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    values = UNITS["quantization"](ramp, severity=severity).unique().tolist()
    assert values == [int(255 * i / (levels - 1) + 1e-6) for i in range(levels)]


def test_gaussian_noise_has_no_mean_and_the_published_deviation() -> None:
    noise = UNITS["gaussian_noise"](flat(128 / 255, count=4), severity=1).double() - 128
    assert abs(noise.mean().item() + 0.5) < 0.1  # truncation takes half a level
    assert abs(noise.std().item() - 0.05 * 255) < 0.1


def test_salt_and_pepper_are_equally_likely() -> None:
    out = UNITS["salt_pepper"](flat(128 / 255, count=8), severity=5)
    assert set(out.unique().tolist()) == {0, 128, 255}
    assert torch.equal(out, out[:, :1].expand_as(out))  # whole pixels
    for value in (0, 255):
        assert abs((out == value).double().mean().item() - 0.016) < 0.001


def test_blur_is_five_boxes_at_224() -> None:
    out = UNITS["blur"](one_pixel(100, 120), severity=1).double()[0, 0] / 255
    kernel = torch.ones(1, dtype=torch.float64)
    for _ in range(5):
        kernel = torch.nn.functional.pad(kernel, (2, 2)).unfold(0, 3, 1).mean(1)
    expected = 0.4 * kernel[:, None] * kernel
    expected[5, 5] += 0.6
    assert (out[95:106, 115:126] - expected).abs().max() < 1 / 255


def test_blur_takes_zeros_from_beyond_the_border_in_every_pass() -> None:
    """As the release's: five convolutions of which each pads with zeros, so that the border darkens."""
    images = pictures(1, 3, 224, 224)
    ones = torch.ones(3, 1, 3, 3, dtype=torch.float64) / 9
    blurred = images.double()
    for _ in range(5):
        blurred = torch.nn.functional.conv2d(blurred, ones, padding=1, groups=3)
    expected = 0.05 * images.double() + 0.95 * blurred
    assert (UNITS["blur"](images, severity=5).double() - expected.floor()).abs().max() <= 1
    white = UNITS["blur"](flat(1), severity=5)[0, 0]
    assert white[112, 112] >= 254
    assert white[0, 0] < 100 < white[0, 112] < 200


@pytest.mark.parametrize("scale", [0.25, 1.0, 1.7, 2.0, 3.5])
def test_blur_spreads_in_proportion_to_the_side(scale: float) -> None:
    weights = noc_texture._spreading_weights(2 / 3 * scale**2)
    distance = torch.arange(len(weights), dtype=torch.float64) - len(weights) // 2
    assert weights.min() >= 0
    torch.testing.assert_close(weights.sum().item(), 1.0)
    torch.testing.assert_close((weights * distance**2).sum().item(), 2 / 3 * scale**2)
    assert (weights[1:-1] == weights[1]).all()


def test_pixelate_makes_blocks() -> None:
    images = pictures(1, 3, 224, 224)
    for severity, size in ((1, 2), (3, 3), (5, 4)):
        whole = 224 // size * size
        blocks = UNITS["pixelate"](images, severity=severity)[..., :whole, :whole]
        blocks = blocks.unfold(2, size, size).unfold(3, size, size).flatten(-2)
        assert (blocks.amax(-1) == blocks.amin(-1)).all()
        means = images[..., :whole, :whole].double().unfold(2, size, size).unfold(3, size, size).mean((-1, -2))
        assert (blocks[..., 0] - means).abs().max() < 1.001
    small = UNITS["pixelate"](pictures(1, 3, 112, 112), severity=3).double()  # blocks of two: 1 + (3 − 1) / 2
    assert torch.equal(small[..., ::2, ::2], small[..., 1::2, 1::2])


def test_thumbnails_lose_detail_but_not_the_mean() -> None:
    images = pictures(1, 3, 224, 160)
    mild, strong = (UNITS["thumbnail_resize"](images, severity=s).double() for s in (1, 5))
    gradients = [x.diff(dim=-1).abs().mean().item() for x in (images.double(), mild, strong)]
    assert gradients[0] > gradients[1] > gradients[2]
    assert abs(strong.mean() - images.double().mean()) < 1


def test_random_choices_come_from_the_image_and_the_seed_only() -> None:
    images = pictures(24, 3, 32, 32)
    for unit in NOC:
        one, two = (unit(images, severity=3, seed=seed) for seed in (0, 1))
        assert torch.equal(one, two) == (unit.draw is no_draw), unit.name
