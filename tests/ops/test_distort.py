"""Positions for warps, against the geometry they stand for."""

from __future__ import annotations

import pytest
import torch

from blemish.ops.box import box_blur
from blemish.ops.distort import area_enlarged, grid_positions, lens_positions, quadrilateral_map, shifted
from blemish.ops.warp import snapped, warp_affine
from pictures import pictures

SQUARE = torch.tensor([[0, 0], [1, 0], [1, 1], [0, 1]], dtype=torch.float64)


def floats(count: int, *size: int) -> torch.Tensor:
    return pictures(count, 3, *size).to(torch.float32) / 255


def test_corners_of_the_square_go_to_the_corners() -> None:
    moves = torch.linspace(-0.2, 0.2, 40, dtype=torch.float64).view(5, 4, 2)
    corners = SQUARE + moves[:, [2, 0, 3, 1]]
    homogeneous = torch.cat([SQUARE, torch.ones(4, 1, dtype=torch.float64)], dim=1)
    mapped = homogeneous @ quadrilateral_map(corners).transpose(1, 2)
    torch.testing.assert_close(mapped[..., :2] / mapped[..., 2:], corners)


def test_three_corners_on_a_line_give_finite_maps() -> None:
    corners = torch.tensor([[[0.0, 0], [1, 0], [1, 0.5], [1, 1]]], dtype=torch.float64)
    assert quadrilateral_map(corners).isfinite().all()


def test_cells_are_stretched_and_the_rest_reaches_the_border() -> None:
    stretch = torch.tensor([[1.0, 0.5, 2.0, 1.0, 0.0]], dtype=torch.float64)
    positions = grid_positions(stretch, 23)[0]
    assert positions[[0, 3, 4, 8, 12, 16, 19]].tolist() == [0, 3, 4, 6, 14, 18, 18]
    assert positions[20:].tolist() == [18, 18 + 5 / 3, 18 + 10 / 3]


def test_a_lens_leaves_the_centre_and_moves_the_rim() -> None:
    x, y = lens_positions(torch.tensor([4.0]), torch.zeros(1, 2), 31, 51, torch.device("cpu"))
    assert (x[0, 15, 25], y[0, 15, 25]) == (25, 15)
    r = 25 / 51
    torch.testing.assert_close(x[0, 15, 50], torch.tensor(25 + 25 * (1 + 4 * (r**2 + r**4))))


def test_snapping_survives_anything() -> None:
    values = torch.tensor([0.015, 0.016, float("nan"), float("inf"), -1e30])
    assert snapped(values).tolist() == [0, 1 / 32, 0, 2.0**16, -(2.0**16)]


def test_shifts_are_affine_maps() -> None:
    shift = torch.tensor([[3.25, -7.5], [40.0, -33.0], [0.0, 0.0], [-0.5, 12.03125]], dtype=torch.float64)
    images = floats(4, 20, 31)
    eye = torch.eye(2, dtype=torch.float64).expand(4, 2, 2)
    expected = warp_affine(images, torch.cat([eye, -shift[..., None]], dim=2))
    torch.testing.assert_close(shifted(images, shift), expected, rtol=0, atol=3e-5)


def test_box_of_whole_and_fractional_radius() -> None:
    images = floats(3, 16, 18)
    out = box_blur(images, torch.tensor([0.0, 1.0, 0.5], dtype=torch.float64), largest=2.0)
    torch.testing.assert_close(out[0], images[0])
    torch.testing.assert_close(out[1, :, 5, 5], images[1, :, 4:7, 4:7].mean((1, 2)))
    weights = torch.tensor([0.25, 0.5, 0.25])
    torch.testing.assert_close(out[2, :, 5, 5], (images[2, :, 4:7, 4:7] * weights[:, None] * weights).sum((1, 2)))


@pytest.mark.parametrize(("tall", "wide"), [(1, 1), (3, 5), (7, 10), (12, 10), (2, 9)])
def test_an_enlargement_by_area_is_the_mean_of_what_each_pixel_covers(tall: int, wide: int) -> None:
    """Worked by brute force: every old pixel repeated, every new one the mean over as many."""
    images = torch.rand(2, 3, 13, 11, generator=torch.Generator().manual_seed(0))
    out = area_enlarged(images, torch.tensor([[wide, tall], [wide, tall]]), 12, 10)
    fine = images[..., :tall, :wide].repeat_interleave(12, dim=2).repeat_interleave(10, dim=3)
    expected = fine.unfold(2, tall, tall).unfold(3, wide, wide).mean((-1, -2))
    torch.testing.assert_close(out, expected)


def test_each_image_has_its_own_sides() -> None:
    images = torch.rand(2, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    sides = torch.tensor([[8, 4], [2, 8]])
    both = area_enlarged(images, sides, 8, 8)
    alone = [area_enlarged(images[i : i + 1], sides[i : i + 1], 8, 8) for i in range(2)]
    assert torch.equal(both, torch.cat(alone))
