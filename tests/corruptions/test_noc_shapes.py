"""The ImageNet-NOC corruptions that hide and move parts of images do so by the published amounts."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from blemish.corruptions.noc import shapes as noc_shapes
from noc_units import PUBLISHED, UNITS, flat, one_pixel


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
    generator = torch.Generator().manual_seed(0)
    places = torch.rand(count, 180, 2, generator=generator)
    draw: tuple[Tensor, ...] = noc_shapes.Shapes(places, torch.ones(count, 180))
    if "artifacts" in name:
        dotted = torch.rand(count, 180, generator=generator) < 6 / 7
        draw = noc_shapes.Lines(places, dotted, torch.ones(count, 1, 1, 1))
    params = unit.table.at([1.0] * count, "any")
    return (unit.render(images, params, draw) > 0).double().mean((1, 2, 3))


@pytest.mark.parametrize(("name", "area"), [("circles", 121), ("rain", 121), ("rhombus", 98), ("artifacts", 37)])
def test_shapes_cover_the_same_part_at_every_size(name: str, area: int) -> None:
    """Areas in pixels at 224: a disk of radius 6.2, a rhombus with half diagonals of 7.

    Of a line six in seven have 14 columns of 3 pixels, the others 5; some lose dots at the border.
    """
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


def columns_of_a_line(name: str, place: int, *, dotted: bool) -> list[int]:
    """The columns, or rows, of one line whose dash lies on a whole pixel, counted from there."""
    params = {"count": torch.ones(1, dtype=torch.float64)}
    # Centres lie 2 pixels off the border along the line, 1 across it: 1.5 + u · 220 and 0.5 + u · 222.
    along, aside = (place - 1.5) / 220, 99.5 / 222
    places = torch.tensor([along, aside] if name == "vertical_artifacts" else [aside, along]).expand(1, 180, 2)
    draw = noc_shapes.Lines(places, torch.full((1, 180), dotted), torch.ones(1, 1, 1, 1))
    out = UNITS[name].render(flat(0), params, draw)[0, 0]
    out = out.T if name == "vertical_artifacts" else out
    assert (out > 0).any(1).nonzero().flatten().tolist() == [99, 100, 101]
    found: list[int] = ((out[100] > 0).nonzero().flatten() - place).tolist()
    return found


@pytest.mark.parametrize("name", ["artifacts", "vertical_artifacts"])
def test_artifacts_are_the_releases_dotted_lines(name: str) -> None:
    """A dash, and dots that are left out where they would not fit: those behind it end 14 pixels from its middle."""
    dash, before, behind = [-2, -1, 0, 1, 2], [-10, -8, -6, -4], [6, 8, 10, 12, 14]
    assert columns_of_a_line(name, 100, dotted=True) == [*before, *dash, *behind]
    assert columns_of_a_line(name, 100, dotted=False) == dash
    assert columns_of_a_line(name, 9, dotted=True) == [*dash, *behind]
    assert columns_of_a_line(name, 10, dotted=True) == [*before, *dash, *behind]
    assert columns_of_a_line(name, 209, dotted=True) == [*before, *dash, *behind]
    assert columns_of_a_line(name, 210, dotted=True) == [*before, *dash]


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
        # Rows move by whole pixels: no gray arises at the edges, and each is at most half a pixel off.
        assert image.unique().tolist() == [0, 255]
        assert torch.equal(centres, centres.round())
        sign = math.copysign(1, slope)
        exact = 112 + sign * math.tan(math.radians(degrees)) * (torch.arange(225).double() - 112)
        torch.testing.assert_close(centres, exact, rtol=0, atol=0.5)
        found.add(sign * degrees)
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
