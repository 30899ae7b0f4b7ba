"""Uniform points in balls: the radius law in 3,072 dimensions, marginals, exact counts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from blemish.core.rng import CounterRng, as_ids
from blemish.corruptions.lp import LP, radius
from blemish.ops.balls import Norm, exact_k_mask, in_ball

DIMENSIONS = 3072
UNITS = {unit.name: unit for unit in LP}


def norm_of(points: torch.Tensor, norm: Norm) -> np.ndarray:
    order = {"l1": 1.0, "l2": 2.0, "linf": float("inf")}[norm]
    return torch.linalg.vector_norm(points.double(), ord=order, dim=1).numpy()


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
@pytest.mark.parametrize("dimensions", [2, 10, DIMENSIONS])
def test_radius_law(norm: Norm, dimensions: int) -> None:
    """Uniform in a ball of d dimensions means that radius^d is uniform in (0, 1)."""
    points = in_ball(CounterRng(0, as_ids(range(4000))), norm, dimensions)
    share = norm_of(points, norm) ** dimensions
    assert share.max() <= 1 + 1e-3
    assert stats.kstest(share, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_directions_are_uniform(norm: Norm) -> None:
    """In two dimensions, against rejection sampling from the square that holds the ball."""
    points = in_ball(CounterRng(1, as_ids(range(20_000))), norm, 2).double().numpy()
    square = np.random.default_rng(0).uniform(-1, 1, (60_000, 2))
    inside = square[np.linalg.norm(square, ord={"l1": 1, "l2": 2, "linf": np.inf}[norm], axis=1) <= 1]
    for direction in (np.array([1.0, 0.0]), np.array([0.6, 0.8]), np.array([0.0, -1.0])):
        assert stats.ks_2samp(points @ direction, inside @ direction).pvalue > 1e-3


def test_coordinates_are_uncorrelated_and_signs_even() -> None:
    points = in_ball(CounterRng(2, as_ids(range(4000))), "l1", 64).double()
    points = points / points.std(0)
    correlation = (points.T @ points / len(points)).fill_diagonal_(0)
    assert correlation.abs().max() < 5 / 4000**0.5
    assert abs(float((points > 0).double().mean()) - 0.5) < 5 * 0.5 / (4000 * 64) ** 0.5


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_equal_severity_means_equal_mean_square(norm: Norm) -> None:
    points = in_ball(CounterRng(3, as_ids(range(2000))), norm, DIMENSIONS).double() * radius(norm, 0.1, DIMENSIONS)
    assert float(points.square().mean()) == pytest.approx(0.01 / 3, rel=0.01)


def test_exactly_so_many_values_are_chosen_and_all_equally_often() -> None:
    count = torch.tensor([0, 1, 7, 50, 100] * 400)
    mask = exact_k_mask(CounterRng(4, as_ids(range(2000))), count, 10, 10)
    assert torch.equal(mask.flatten(1).sum(1), count)
    sevens = mask[2::5].double().sum(0).flatten()
    assert stats.chisquare(sevens.numpy()).pvalue > 1e-3


def test_l0_replaces_the_stated_number() -> None:
    images = torch.full((3, 3, 40, 50), 300 % 256, dtype=torch.uint8)
    draw_params = UNITS["lp:l0"].table.at([1.0, 2.5, 5.0], "any")
    assert draw_params["fraction"].tolist() == pytest.approx([0.02, 0.05, 0.1])
    changed = (UNITS["lp:l0"](images, severity=[1.0, 2.5, 5.0]) != images).flatten(1).sum(1)
    # A replacement may happen to equal the old level: one in 256.
    for found, expected in zip(changed.tolist(), [120, 300, 600], strict=True):
        assert expected * 0.97 < found <= expected


@pytest.mark.parametrize("name", ["lp:linf", "lp:gaussian", "lp:l1", "lp:l2"])
def test_images_receive_noise_of_the_stated_size(name: str) -> None:
    images = torch.full((4, 3, 64, 64), 128, dtype=torch.uint8)
    noise = (UNITS[name](images, severity=2).double() + 0.5 - 128) / 255
    assert float(noise.square().mean().sqrt()) == pytest.approx(0.04 / 3**0.5, rel=0.02)
    if name == "lp:linf":
        assert float(noise.abs().max()) <= 0.04 + 1 / 255
