"""Points and boxes after maps that can be inverted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from blemish.ops.forward import Forward
from blemish.ops.positions import Positions, from_map, in_place, moved_masks, pixel_places

HEIGHT, WIDTH = 20, 30
LIKE = torch.zeros(1, 1, HEIGHT, WIDTH)


def forward(rows: list[list[float]]) -> Forward:
    return Forward(from_map(LIKE, torch.tensor([rows], dtype=torch.float64), "zeros"), 0)


def double(*values: float) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)


def test_nothing_moves_by_the_identity_to_the_last_digit() -> None:
    same = forward([[1, 0, 0], [0, 1, 0]])
    assert same.box(double(0, 0, WIDTH, HEIGHT)).tolist() == pytest.approx([0, 0, WIDTH, HEIGHT], abs=1e-9)
    assert same.box(double(3.2, 4.7, 3.4, 4.8)).tolist() == pytest.approx([3.2, 4.7, 3.4, 4.8], abs=1e-9)
    for point in ([0, 0], [WIDTH, HEIGHT], [3.2, 4.7]):
        assert same.point(double(*point)).tolist() == pytest.approx(point, abs=1e-9)


def test_a_turn_about_the_middle() -> None:
    """The corners of a box are turned by the inverse; the box around them is that of a polygon, which is exact."""
    angle = math.radians(25)
    cos, sin = math.cos(angle), math.sin(angle)
    x, y = (WIDTH - 1) / 2, (HEIGHT - 1) / 2
    turned = forward([[cos, sin, x - cos * x - sin * y], [-sin, cos, y + sin * x - cos * y]])
    box = [11.3, 7.2, 17.9, 12.4]
    corners = [(a, b) for a in (box[0], box[2]) for b in (box[1], box[3])]
    middle = (WIDTH / 2, HEIGHT / 2)
    places = [
        (
            middle[0] + cos * (a - middle[0]) - sin * (b - middle[1]),
            middle[1] + sin * (a - middle[0]) + cos * (b - middle[1]),
        )
        for a, b in corners
    ]
    expected = [
        min(a for a, _ in places),
        min(b for _, b in places),
        max(a for a, _ in places),
        max(b for _, b in places),
    ]
    assert turned.box(double(*box)).tolist() == pytest.approx(expected, abs=1e-9)
    for corner, place in zip(corners, places, strict=True):
        assert turned.point(double(*corner)).tolist() == pytest.approx(place, abs=1e-9)


def test_an_enlargement_clips_at_the_border_and_loses_what_is_outside() -> None:
    """Twice as large about the corner: x′ = 2x, in pixels from the edge; in centres s = p / 2 − 1/4."""
    large = forward([[0.5, 0, -0.25], [0, 0.5, -0.25]])
    assert large.box(double(2, 3, 5, 4)).tolist() == pytest.approx([4, 6, 10, 8])
    assert large.box(double(10, 2, 20, 15)).tolist() == pytest.approx([20, 4, WIDTH, HEIGHT])
    assert large.box(double(16, 2, 20, 5)) is None
    assert large.point(double(16, 3)) is None
    assert large.box(double(-5, -5, 1, 1)).tolist() == pytest.approx([0, 0, 2, 2])
    assert large.box(double(4, 4, 4, 6)) is None


def test_a_repetition_is_not_the_image_but_has_its_mask() -> None:
    """Moved right by 6 pixels, with the mirror image beyond the edge: columns 5 … 0 show what is in 1 … 6."""
    x, y = pixel_places(1, HEIGHT, WIDTH)
    moved = Positions(x - 6, y, "reflect101")
    assert Forward(moved, 0).box(double(1, 2, 4, 5)).tolist() == pytest.approx([7, 2, 10, 5])
    masks = torch.zeros(1, 1, HEIGHT, WIDTH, dtype=torch.uint8)
    masks[..., 1:4] = 1
    assert moved_masks(masks, moved, 0)[0, 0, 0].nonzero().flatten().tolist() == [3, 4, 5, 7, 8, 9]
    black = moved_masks(masks + 1, moved._replace(outside="zeros"), 255)[0, 0, 0, :8].tolist()
    assert black == [255] * 6 + [1, 2]


def test_large_maps_agree_with_looking_at_every_pixel() -> None:
    """Several blocks of cells, and a curved map: the box around the pixels that come from it, to a pixel."""
    x, y = pixel_places(1, 70, 90)
    bent = Positions(x + 6 * torch.sin(y / 9), y + 5 * torch.cos(x / 11) - 2)
    for box in ([5, 5, 80, 60], [20.5, 30.25, 40, 44], [60, 50, 90, 70]):
        inside = (bent.x + 0.5 > box[0]) & (bent.x + 0.5 < box[2]) & (bent.y + 0.5 > box[1]) & (bent.y + 0.5 < box[3])
        rows, columns = inside[0].nonzero().unbind(1)
        expected = [int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1]
        assert np.allclose(Forward(bent, 0).box(double(*box)), expected, atol=0.75)


def test_tiles_that_change_places() -> None:
    """The halves of the image change places: a box across the middle is in both ends, and a point in one of them."""
    x, y = pixel_places(1, HEIGHT, WIDTH)
    halves = Forward(Positions((x + WIDTH / 2) % WIDTH, y, whole=True), 0)
    assert halves.box(double(13.5, 2, 17, 4)).tolist() == pytest.approx([0, 2, WIDTH, 4])
    assert halves.point(double(14.25, 3.5)).tolist() == pytest.approx([29.25, 3.5])
    assert halves.point(double(15.75, 3.5)).tolist() == pytest.approx([0.75, 3.5])


def test_a_hole_hides_what_is_in_it() -> None:
    shown = torch.ones(1, HEIGHT, WIDTH, dtype=torch.bool)
    shown[:, 5:10, 8:16] = False
    cut = Forward(in_place(LIKE, shown), 0)
    assert cut.box(double(9, 6, 15, 9)) is None
    assert cut.box(double(4, 6, 12, 9)).tolist() == [4, 6, 8, 9]
    assert cut.box(double(4, 2, 20, 12)).tolist() == [4, 2, 20, 12]
    assert cut.point(double(9.5, 6.5)) is None
    assert cut.point(double(7.5, 6.5)).tolist() == [7.5, 6.5]
