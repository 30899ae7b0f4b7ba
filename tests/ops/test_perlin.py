"""Gradient noise: what its definition promises at the corners and between them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from blemish.ops.perlin import TABLE, turbulence


def tables(count: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    angles = torch.rand(count, TABLE, generator=generator, dtype=torch.float64) * 2 * math.pi
    gradients = torch.stack([angles.cos(), angles.sin()], dim=2)
    return gradients, torch.rand(count, TABLE, generator=generator).argsort(1)


def test_zero_at_the_corners_of_cells() -> None:
    field = turbulence(*tables(2), 65, 49, cell=16, octaves=1)
    assert field.shape == (2, 1, 65, 49)
    assert field[:, :, ::16, ::16].abs().max() == 0
    assert field.max() > 0.3


@pytest.mark.parametrize("place", [(3, 5), (17, 40)])
def test_by_hand(place: tuple[int, int]) -> None:
    """The formula at one pixel, one corner after the other, rows before columns."""
    gradients, places = tables(1)
    cell, (row, column) = 16.0, place
    u, v = row / cell, column / cell
    i, j, s, t = int(u), int(v), u % 1, v % 1

    def corner(below: int, right: int) -> float:
        number = int(places[0, (int(places[0, i + below]) + j + right) % TABLE])
        down, across = gradients[0, number].tolist()
        return float(down * (s - below) + across * (t - right))

    bend_s, bend_t = (3 * x**2 - 2 * x**3 for x in (s, t))
    left, right = (corner(0, k) + bend_s * (corner(1, k) - corner(0, k)) for k in (0, 1))
    expected = abs(1.5 * (left + bend_t * (right - left)))
    found = turbulence(gradients, places, 32, 48, cell=cell, octaves=1)[0, 0, row, column]
    assert float(found) == pytest.approx(expected, abs=1e-12)


def test_octaves_add_up() -> None:
    gradients, places = tables(1)
    both = turbulence(gradients, places, 30, 20, cell=16, octaves=2)
    parts = [turbulence(gradients, places, 30, 20, cell=cell, octaves=1) for cell in (16, 8)]
    torch.testing.assert_close(both, parts[0] + parts[1] / 2, atol=1e-12, rtol=0)
