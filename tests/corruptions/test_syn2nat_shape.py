"""The twenty Syn2Nat candidates that move, hide or blur things: against the originals' statistics, and alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import blemish
from blemish.corruptions.syn2nat import bend as candidates_bend
from blemish.corruptions.syn2nat import blur as candidates_blur
from blemish.corruptions.syn2nat import rearrange as candidates_rearrange
from blemish.corruptions.syn2nat import shape as candidates_shape
from blemish.corruptions.syn2nat import warp as candidates_warp
from picture_statistics import statistics
from pictures import pictures

TWENTY = (
    *candidates_blur.BLURS,
    *candidates_shape.OCCLUSIONS,
    *candidates_rearrange.REARRANGEMENTS,
    *candidates_warp.WARPS,
    *candidates_bend.BENDS,
)
UNITS = {unit.name.removeprefix("syn2nat:"): unit for unit in TWENTY}

# The originals' names in the recorded statistics, where they are not ours in camel case.
RECORDED_AS = {"affine": "Affines", "translate": "Transpose"}

DRAWS = 60
IMAGES = {"image0": "imagenet_c_224.npz", "image1": "ccc_224.npz"}

# Statistics are recorded to three digits.
ROUNDING = 0.0015

# Standard deviations of two samples of 60 draws, some of them from few outcomes or with heavy tails.
SPREAD_RATIO = 2.0

# (candidate, statistic): why its spread differs. Medians have no exceptions.
EXCEPTIONS = {
    ("perspective", "frac_0"): "one draw in sixty may show nothing but the first image's black background, and decides",
}


@pytest.fixture(scope="module")
def recorded(recordings: Path) -> dict[str, Any]:
    """Per candidate, image and statistic: mean, std and 5, 50 and 95 % quantiles of 60 draws of the original."""
    candidates: dict[str, Any] = json.loads((recordings / "syn2nat_statistics.json").read_text())["candidates"]
    return candidates


@pytest.fixture(scope="module")
def clean(recordings: Path) -> dict[str, Tensor]:
    files = {name: recordings / file for name, file in IMAGES.items()}
    arrays = {name: np.load(file)["image|0"] for name, file in files.items() if file.exists()}
    return {name: torch.from_numpy(array).permute(2, 0, 1).contiguous() for name, array in arrays.items()}


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("name", UNITS)
def test_statistics_are_the_originals(
    name: str, image: str, recorded: dict[str, Any], clean: dict[str, Tensor]
) -> None:
    if image not in clean:
        pytest.skip("this picture is not in the small part of the recordings (tests/golden)")
    ours = statistics(UNITS[name](clean[image].expand(DRAWS, -1, -1, -1), severity=5), clean[image])
    theirs = recorded[RECORDED_AS.get(name, name.title().replace("_", ""))][image]
    assert ours.keys() == theirs.keys()
    wrong = []
    for statistic, values in ours.items():
        _, spread, low, _, high = theirs[statistic]
        median, own_spread = float(values.median()), float(values.std(correction=0))
        inside = low - ROUNDING <= median <= high + ROUNDING
        alike = own_spread <= SPREAD_RATIO * spread + ROUNDING and spread <= SPREAD_RATIO * own_spread + ROUNDING
        if not inside or not (alike or (name, statistic) in EXCEPTIONS):
            wrong.append((statistic, median, (low, high), own_spread, spread))
    assert not wrong


def test_perspective_is_as_sharp_as_the_original(recorded: dict[str, Any], clean: dict[str, Tensor]) -> None:
    """Median gradients of 300 draws: warped in one step they were 7 % above the recorded ones, known to about 4 %."""
    for image, before in clean.items():
        ours = statistics(UNITS["perspective"](before.expand(300, -1, -1, -1), severity=5), before)["grad_x"]
        assert float(ours.median()) == pytest.approx(recorded["Perspective"][image]["grad_x"][3], rel=0.04)


@pytest.mark.parametrize("name", ["border", "downscale"])
def test_what_is_not_random_is_the_original_to_the_last_recorded_digit(
    name: str, recorded: dict[str, Any], clean: dict[str, Tensor]
) -> None:
    for image, before in clean.items():
        ours = statistics(UNITS[name](before[None], severity=5), before)
        for statistic, value in ours.items():
            assert float(value) == pytest.approx(recorded[name.title()][image][statistic][0], abs=6e-4)


def test_there_are_twenty() -> None:
    assert len(UNITS) == 20
    assert all(unit.family == "syn2nat" and unit.name.startswith("syn2nat:") for unit in TWENTY)


def zeros(*shape: int) -> Tensor:
    return torch.zeros(2, *shape, dtype=torch.float64)


NEUTRAL: dict[str, Any] = {
    "affine": candidates_warp.Zoom(zeros() + 1),
    "rotate": candidates_warp.Turn(zeros()),
    "translate": candidates_warp.Shift(zeros(2)),
    "elastic_transform": candidates_warp.Moves(zeros(3, 2)),
    "perspective": candidates_bend.Corners(zeros(4, 2)),
    "optical_distortion": candidates_bend.Lens(zeros(), zeros(2)),
    "grid_distortion": candidates_bend.Stretch(zeros(5) + 1, zeros(5) + 1),
    "blur": candidates_blur.Kernel(zeros()),
    "gaussian_blur": candidates_blur.Kernel(zeros()),
    "median_blur": candidates_blur.Kernel(zeros()),
    "motion_blur": candidates_blur.Line(zeros(2, 2)),
    "cutout": candidates_shape.Holes(*(zeros(1) for _ in range(4))),
    "random_grid_shuffle": candidates_rearrange.Tiles(torch.arange(16).expand(2, 16)),
}


@pytest.mark.parametrize("name", NEUTRAL)
@pytest.mark.parametrize("size", [(8, 8), (31, 57), (224, 160)])
def test_a_neutral_draw_changes_nothing(name: str, size: tuple[int, int]) -> None:
    unit, images = UNITS[name], pictures(2, 3, *size)
    params = unit.table.at([5.0, 5.0], "any")
    assert torch.equal(unit.render(images, params, NEUTRAL[name]), images)


def test_half_a_turn_is_both_flips() -> None:
    """About the originals' centre, half a pixel down and right of the image's: one row and one column move in."""
    images = pictures(2, 3, 40, 32)
    turned = UNITS["rotate"].render(images, {}, candidates_warp.Turn(zeros() + 180))
    assert torch.equal(turned[..., 1:, 1:], images.flip(-2, -1)[..., :-1, :-1])


def test_a_whole_shift_copies_pixels() -> None:
    images = pictures(2, 3, 40, 32)
    moved = UNITS["translate"].render(images, {}, candidates_warp.Shift(zeros(2) + torch.tensor([0.25, -0.1])))
    assert torch.equal(moved[..., :-4, 8:], images[..., 4:, :-8])


def test_a_corner_that_lies_inside_gives_way() -> None:
    """The top right corner moved far inwards: two corners of what is cut out coincide, and are moved apart."""
    images = pictures(2, 3, 64, 64)
    share = zeros(4, 2)
    share[:, 1] = 0.7
    out = UNITS["perspective"].render(images, {}, candidates_bend.Corners(share))
    assert out.double().diff(dim=-1).abs().mean() < images.double().diff(dim=-1).abs().mean()


def test_a_line_kernel_is_a_mean() -> None:
    images = pictures(2, 3, 224, 224)
    line = candidates_blur.Line(torch.tensor([[[-2.0, 0.0], [2.0, 0.0]]], dtype=torch.float64).expand(2, 2, 2))
    out = UNITS["motion_blur"].render(images, {}, line)
    expected = images.double().unfold(2, 5, 1).mean(-1).add(0.5).floor()
    assert torch.equal(out[:, :, 2:-2].double(), expected)


@pytest.mark.parametrize("name", ["blur", "gaussian_blur", "median_blur", "motion_blur"])
def test_kernels_grow_with_the_image_and_shrink_with_severity(name: str) -> None:
    unit = UNITS[name]
    rng = blemish.CounterRng(0, torch.arange(50), unit.name)

    def drawn(severity: float, side: int) -> Tensor:
        (values,) = unit.draw(blemish.Shape(3, side, side), unit.table.at([severity] * 50, "any"), rng)
        return torch.as_tensor(values)

    torch.testing.assert_close(drawn(5, 448), 2 * drawn(5, 224))
    torch.testing.assert_close(drawn(2.5, 448), drawn(5, 224))


def test_compression_swaps_red_and_blue() -> None:
    """The codec takes blue for red: what it loses of a red picture is what it loses of a blue one otherwise."""
    images = pictures(2, 3, 64, 64)
    draw = candidates_blur.Quality(zeros() + 10)
    ours = UNITS["jpeg_compression"].render(images, {}, draw)
    plain = blemish.catalog["jpeg_compression"].render(images.flip(1), {"quality": draw.quality}, ())
    assert torch.equal(ours.flip(1), plain)


def test_tiles_are_moved_not_changed() -> None:
    images = pictures(4, 3, 64, 48)
    out = UNITS["random_grid_shuffle"](images, severity=5)
    assert torch.equal(out.flatten(2).sort(dim=2).values, images.flatten(2).sort(dim=2).values)
    slight = UNITS["random_grid_shuffle"](images, severity=1)
    same = (slight == images).all(1).unfold(1, 16, 16).unfold(2, 12, 12).all(-1).all(-1).flatten(1).sum(1)
    assert same.min() >= 13


def test_a_tile_may_be_a_pixel_short() -> None:
    out = UNITS["random_grid_shuffle"](pictures(4, 1, 31, 57), severity=5)
    assert out.shape == (4, 1, 31, 57)


def test_flips_are_never_none_and_all_three() -> None:
    image = pictures(1, 3, 16, 24)
    ways = {"both": image.flip(-2, -1), "vertical": image.flip(-2), "horizontal": image.flip(-1)}
    out = UNITS["flip"](image.expand(30, -1, -1, -1), severity=5)
    found = [next(way for way, flipped in ways.items() if torch.equal(one, flipped[0])) for one in out]
    assert set(found) == set(ways)


def test_a_gray_image_loses_a_share_of_its_luminance() -> None:
    out = UNITS["channel_dropout"](torch.full((30, 1, 8, 8), 200, dtype=torch.uint8), severity=5)
    assert set(out[:, 0, 0, 0].tolist()) == {140, 83, 177}


def test_holes_are_whole_squares_inside() -> None:
    white = torch.full((20, 1, 224, 224), 255, dtype=torch.uint8)
    coarse = (UNITS["coarse_dropout"](white, severity=5) == 0).sum((1, 2, 3)) / 64
    assert coarse.max() <= 48
    assert coarse.min() >= 10
    one = UNITS["cutout"](white, severity=5) == 0
    sides = torch.cat([one.any(2).sum(-1), one.any(3).sum(-1)])
    assert sides.max() == 150
    assert sides.min() >= 75


@pytest.mark.parametrize("name", ["flip", "channel_dropout"])
def test_lower_severities_are_refused_where_they_mean_nothing(name: str) -> None:
    with pytest.raises(blemish.InputError, match="severity 5 only"):
        UNITS[name](pictures(1, 3, 16, 16), severity=3)
