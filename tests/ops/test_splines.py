"""Cubic B-splines against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import ndimage

from blemish.ops.splines import interpolating_map, interpolating_matrix, spline_coefficients, spline_weights


@pytest.mark.parametrize("size", [2, 3, 8, 31, 100])
def test_coefficients_are_those_of_scipy(size: int) -> None:
    values = np.random.default_rng(0).random(size)
    expected = ndimage.spline_filter1d(values, order=3, mode="mirror")
    np.testing.assert_allclose(interpolating_matrix(size).numpy() @ values, expected, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 31, 100])
def test_the_recursive_filter_is_the_matrix(size: int) -> None:
    values = torch.from_numpy(np.random.default_rng(0).random((size, 4)))
    expected = interpolating_matrix(size) @ values
    torch.testing.assert_close(spline_coefficients(values * 6), expected, atol=1e-14, rtol=0)


def test_the_map_is_the_matrix() -> None:
    images = torch.from_numpy(np.random.default_rng(0).random((2, 3, 40, 100)))
    cpu = torch.device("cpu")
    both = interpolating_map(100, cpu).across(interpolating_map(40, cpu).down(images))
    expected = interpolating_matrix(40) @ images @ interpolating_matrix(100).T
    torch.testing.assert_close(both, expected, atol=1e-12, rtol=0)


def test_a_spline_passes_through_its_points() -> None:
    """At whole positions the weights are 1/6, 4/6, 1/6, 0 of the coefficients; elsewhere they sum to 1."""
    at_pixels = [float(weight) for weight in spline_weights(torch.zeros(1, dtype=torch.float64))]
    assert at_pixels == pytest.approx([1 / 6, 4 / 6, 1 / 6, 0], abs=1e-15)
    fractions = torch.linspace(0, 1, 11, dtype=torch.float64)
    assert torch.stack(spline_weights(fractions)).sum(0).tolist() == pytest.approx([1.0] * 11, abs=1e-15)
    assert min(float(weight.min()) for weight in spline_weights(fractions)) > -1e-15
