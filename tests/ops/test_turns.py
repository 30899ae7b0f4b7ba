"""Means of turned images against SciPy's turned images, and neighbours with and without compiled kernels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

import digests
from blemish.ops.compiled import compiled
from blemish.ops.turns import Turns, _runs, turned_mean

CPU = torch.device("cpu")


SHARES = {-1: 0.1, -0.5: 0.2, 0: 0.4, 0.5: 0.2, 1: 0.1}


def turns(degrees: float) -> Turns:
    """Five, by so many degrees at most."""
    return tuple((math.radians(degrees * step), share) for step, share in SHARES.items())


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 7), (2, 3), (20, 31), (48, 48), (33, 17)])
@pytest.mark.parametrize("degrees", [0.5, 9, 100])
def test_the_mean_is_that_of_turned_images(height: int, width: int, degrees: float) -> None:
    levels = digests.batch(2, height, width)
    rows, columns = np.mgrid[:height, :width] - np.array([(height - 1) / 2, (width - 1) / 2])[:, None, None]
    expected = np.zeros(levels.shape)
    for angle, share in turns(degrees):
        places = (
            math.cos(angle) * rows + math.sin(angle) * columns + (height - 1) / 2,
            -math.sin(angle) * rows + math.cos(angle) * columns + (width - 1) / 2,
        )
        for image, total in zip(levels.flatten(0, 1).numpy(), expected.reshape(-1, height, width), strict=True):
            smooth = image / 255
            for axis in (0, 1):
                if image.shape[axis] > 1:
                    smooth = ndimage.spline_filter1d(smooth, axis=axis, mode="mirror")
            seen = ndimage.map_coordinates(np.pad(smooth, 3, mode="reflect"), [p + 3 for p in places], prefilter=False)
            inside = (places[0] >= 0) & (places[0] <= height - 1) & (places[1] >= 0) & (places[1] <= width - 1)
            total += share * seen * inside
    found = turned_mean(levels, turns(degrees)).numpy().astype(float)
    # Truncated, and of a place at the very border a rounding decides whether it is inside.
    exact = (expected * 255).clip(0, 255)
    off = (found > exact + 1e-3) | (found < np.floor(exact - 1e-3))
    assert off.mean() <= (0 if degrees < 90 else 0.01)


@pytest.mark.parametrize(("height", "width"), [(2, 3), (20, 31), (75, 120)])
def test_neighbours_are_the_same_without_kernels(height: int, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if compiled("turns") is None:
        pytest.skip("no numba, or no processor with AVX2")
    quarter = ((height + 1) // 2) * ((width + 1) // 2)
    arguments = (height, width, turns(9), quarter // 3, quarter, CPU)
    made = _runs(*arguments)
    _runs.clear()
    monkeypatch.setenv("BLEMISH_COMPILED", "0")
    plain = _runs(*arguments)
    _runs.clear()
    assert made.most == plain.most
    for one, other in zip(made[:3], plain[:3], strict=True):
        assert torch.equal(one, other)


def test_all_shares_are_kept() -> None:
    """In the middle of an image, all turns are inside: weights add up to 1."""
    runs = _runs(64, 64, turns(9), 0, 32 * 32, CPU)
    first = int(runs.starts[31 * 32 + 31])
    assert float(runs.weights[first:].sum()) == pytest.approx(1, abs=1e-6)
