"""The ImageNet-NOC corruptions do what their descriptions say, by the published amounts."""

from __future__ import annotations

import math
import pickle

import pytest
import torch
from torch import Tensor

from blemish.corruptions.base import no_draw
from blemish.corruptions.noc import NOC
from blemish.corruptions.noc import shapes as noc_shapes
from blemish.corruptions.noc import texture as noc_texture
from blemish.ops.hue import turn_hue
from pictures import pictures

UNITS = {unit.name.removeprefix("noc:"): unit for unit in NOC}

# "Severity Range" in Figures 5 and 6 of the paper, mild end first. Shear is printed as one number, 0.39; the bounds
# here are those of the authors' released settings, in degrees.
PUBLISHED = {
    "quantization": (9, 4),
    "gaussian_noise": (0.05, 0.18),
    "salt_pepper": (0.003, 0.032),
    "blur": (0.4, 0.95),
    "thumbnail_resize": (1.1, 3.25),
    "pixelate": (2, 4),
    "artifacts": (15, 170),
    "vertical_artifacts": (15, 180),
    "rhombus": (9, 76),
    "rain": (12, 120),
    "circles": (7, 50),
    "obstruction": (47, 125),
    "border": (9, 46),
    "translation": (15, 62),
    "shear": (12, 39),
    "elastic": (44, 110),
    "rotation": (7, 50),
    "backlight": (0.11, 0.44),
    "brightness": (0.16, 0.51),
    "contrast": (0.33, 0.74),
    "color_distortion": (0.09, 0.40),
    "gray_scale": (0.49, 1),
    "hue": (0.05, 0.5),
}


def flat(value: float, *, count: int = 1, channels: int = 3, height: int = 224, width: int = 224) -> Tensor:
    return torch.full((count, channels, height, width), round(255 * value), dtype=torch.uint8)


def one_pixel(y: int, x: int, *, count: int = 1, height: int = 224, width: int = 224) -> Tensor:
    """White on black."""
    images = flat(0, count=count, height=height, width=width)
    images[:, :, y, x] = 255
    return images


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


@pytest.mark.parametrize(("severity", "levels"), [(1, 9), (3.4, 6), (5, 4)])
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
    constant = flat(200 / 255, height=31, width=57)
    assert (UNITS["blur"](constant, severity=5).int() - 200).abs().max() <= 1


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


# Shapes


def test_border_thickness_scales_with_the_shorter_side() -> None:
    for height, width, thickness in ((224, 224, 46), (112, 112, 23), (224, 160, 33), (448, 448, 92)):
        out = UNITS["border"](flat(1, height=height, width=width), severity=5)[0, 0]
        inner = out[thickness:-thickness, thickness:-thickness]
        assert (inner == 255).all()
        assert (out == 255).sum() == inner.numel()
    assert (UNITS["border"](flat(1, height=112, width=112), severity=1)[0, 0, 56] == 255).sum() == 112 - 2 * 5  # 4.5


def test_obstruction_is_a_gray_square_anywhere() -> None:
    out = UNITS["obstruction"](flat(1, count=30, height=224, width=300), severity=5)
    corners = []
    for image in out:
        hidden = (image != 255).all(0)
        rows, columns = hidden.any(1).nonzero().flatten(), hidden.any(0).nonzero().flatten()
        assert len(rows) == len(columns) == 125
        assert hidden.sum() == 125**2
        assert len(image[:, hidden].unique()) == 1
        corners.append((int(rows[0]), int(columns[0])))
    assert len(set(corners)) > 25
    assert max(top for top, _ in corners) > 70
    assert max(left for _, left in corners) > 120


def areas(name: str, side: int, count: int = 200) -> Tensor:
    """The covered part of each image at severity 1."""
    images = flat(0, count=count, channels=1, height=side, width=side)
    unit = UNITS[name]
    places = torch.rand(count, 180, 2, generator=torch.Generator().manual_seed(0))
    draw = noc_shapes.Shapes(places, torch.ones(count, 180))
    params = unit.table.at([1.0] * count, "any")
    return (unit.render(images, params, draw) > 0).double().mean((1, 2, 3))


@pytest.mark.parametrize(("name", "area"), [("circles", 121), ("rain", 121), ("rhombus", 98), ("artifacts", 45)])
def test_shapes_cover_the_same_part_at_every_size(name: str, area: int) -> None:
    """Areas in pixels at 224: a disk of radius 6.2, a rhombus with half diagonals of 7, 15 columns of 3 pixels."""
    most = PUBLISHED[name][0] * area / 224**2
    for side in (224, 64, 20):
        part = areas(name, side).mean().item()
        assert 0.87 * most < part < 1.02 * most  # less where shapes overlap or leave the image


def test_the_first_shapes_stay_where_they_are() -> None:
    images = flat(1)
    mild, strong = (UNITS["rhombus"](images, severity=s) for s in (2, 4))
    assert ((strong != 255) | (mild == 255)).all()


def test_rain_moves_half_the_way_to_white_per_drop() -> None:
    out = UNITS["rain"](flat(0.2), severity=5)
    assert out.unique().tolist()[:3] == [51, 153, 204]
    assert set(out.unique().tolist()) <= {51, 153, 204, 229, 242, 248, 251, 253, 254}


def test_the_last_shape_lies_on_top() -> None:
    places = torch.full((1, 180, 2), 0.5)
    grays = torch.linspace(0.1, 0.9, 180)[None]
    unit = UNITS["circles"]
    params = unit.table.at([5.0], "any")
    out = unit.render(flat(0), params, noc_shapes.Shapes(places, grays))
    assert out.unique().tolist() == [0, int(255 * grays[0, 49].item() + 2**-12)]


def test_artifacts_are_dotted_lines() -> None:
    for name, turned in (("artifacts", False), ("vertical_artifacts", True)):
        unit = UNITS[name]
        params = {"count": torch.ones(1, dtype=torch.float64)}
        places = torch.full((1, 180, 2), 100.5 / 224)
        out = unit.render(flat(0), params, noc_shapes.Shapes(places, torch.ones(1, 180)))[0, 0]
        out = out.T if turned else out
        assert (out > 0).any(1).nonzero().flatten().tolist() == [99, 100, 101]
        columns = (out[100] > 0).nonzero().flatten() - 100
        assert columns.tolist() == [-12, -10, -8, -6, -4, -2, -1, 0, 1, 2, 4, 6, 8, 10, 12]


def test_artifacts_of_one_image_have_one_gray() -> None:
    out = UNITS["artifacts"](flat(1, count=10), severity=5)
    assert all(len(image.unique()) == 2 for image in out)
    assert len({int(image.min()) for image in out}) > 5


# Geometry


def test_translation_moves_by_whole_pixels_in_four_directions() -> None:
    out = UNITS["translation"](one_pixel(100, 80, count=40), severity=1)
    found = {tuple(image[0].nonzero().flatten().tolist()) for image in out}
    assert found == {(100 + dy, 80 + dx) for dy in (-15, 15) for dx in (-15, 15)}
    assert (out.amax((1, 2, 3)) == 255).all()
    # Each side has its own scale: 62 pixels are 62 down and 124 across.
    wide = UNITS["translation"](one_pixel(100, 200, width=448), severity=5)[0, 0].nonzero().flatten().tolist()
    assert (abs(wide[0] - 100), abs(wide[1] - 200)) == (62, 124)


def test_what_moves_in_is_black() -> None:
    for name in ("translation", "shear", "rotation"):
        out = UNITS[name](flat(1), severity=5)
        assert (out == 0).any()
        assert (out == 255).any()


@pytest.mark.parametrize(("severity", "degrees"), [(1, 7), (5, 50)])
def test_rotation_turns_by_the_published_angle_both_ways(severity: float, degrees: float) -> None:
    """Where a square of white 80 pixels to the right of the centre ends."""
    images = flat(0, count=20, height=225, width=225)
    images[:, :, 110:115, 190:195] = 255
    found = set()
    for image in UNITS["rotation"](images, severity=severity).double()[:, 0]:
        y, x = (torch.arange(225) - 112.0,) * 2
        mass = image.sum()
        down, right = (image.sum(1) @ y.double() / mass).item(), (image.sum(0) @ x.double() / mass).item()
        assert abs(math.hypot(down, right) - 80) < 0.1
        found.add(round(math.degrees(math.atan2(down, right)), 1))
    assert found == {degrees, -degrees}


@pytest.mark.parametrize(("severity", "degrees"), [(1, 12), (5, 39)])
def test_shear_moves_rows_in_proportion_to_their_height(severity: float, degrees: float) -> None:
    images = flat(0, count=20, height=225, width=225)
    images[..., 110:115] = 255
    found = set()
    for image in UNITS["shear"](images, severity=severity).double()[:, 0]:
        centres = (image @ torch.arange(225).double()) / image.sum(1)
        assert abs(centres[112].item() - 112) < 0.05
        slope = ((centres[212] - centres[12]) / 200).item()
        torch.testing.assert_close(centres, 112 + slope * (torch.arange(225).double() - 112), rtol=0, atol=0.2)
        found.add(round(math.degrees(math.atan(slope)), 0))
    assert found == {degrees, -degrees}


def test_elastic_stretches_what_is_left_of_one_side() -> None:
    ramp = torch.arange(224, dtype=torch.float32) / 255
    images = torch.stack([ramp.expand(224, 224), ramp[:, None].expand(224, 224), torch.zeros(224, 224)])[None]
    found = set()
    for image in UNITS["elastic"](images.expand(40, -1, -1, -1), severity=1) * 255:
        across, down = image[0, 112], image[1, :, 112]
        # 180 of 224 pixels remain, 0 … 179 or 44 … 223; middles of the new ones lie 0.1 further out, and are truncated.
        ranges = tuple((round(side[0].item()), round(side[-1].item())) for side in (across, down))
        found.add(ranges)
    whole, start, end = (0, 223), (0, 179), (43, 223)
    assert found == {(whole, start), (whole, end), (start, whole), (end, whole)}


def test_random_choices_come_from_the_image_and_the_seed_only() -> None:
    images = pictures(24, 3, 32, 32)
    for unit in NOC:
        one, two = (unit(images, severity=3, seed=seed) for seed in (0, 1))
        assert torch.equal(one, two) == (unit.draw is no_draw), unit.name
