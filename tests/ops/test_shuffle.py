"""Glass blur's neighbour copying: against the sequential loop over pixels, on both ways to follow the chains."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops import shuffle
from blemish.ops.shuffle import _doubled, _walk, shuffle_sources


def looped(dy: NDArray[np.int8], dx: NDArray[np.int8], delta: int) -> NDArray[np.int64]:
    """The reference's loop on one image whose pixels are their own numbers: passes of in-place copies."""
    passes, height, width = dy.shape
    values = np.arange(height * width).reshape(height, width)
    for step in range(passes):
        for h in range(height - delta, delta, -1):
            for w in range(width - delta, delta, -1):
                values[h, w] = values[h + dy[step, h, w], w + dx[step, h, w]]
    return values.ravel()


def offsets(deltas: list[int], passes: int, height: int, width: int, seed: int) -> tuple[Tensor, Tensor]:
    """Uniform on −d … d − 1 for every pixel, those that are never visited too."""
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(-d, d, (2, passes, height, width), dtype=np.int8) for d in deltas]
    dy, dx = torch.from_numpy(np.stack(drawn, axis=1))
    return dy, dx


def doubled_in_numpy(source: NDArray[np.int64], chained: NDArray[np.bool_]) -> NDArray[np.int64]:
    count = len(source)
    ends = torch.arange(count, 2 * count)
    result: NDArray[np.int64] = _doubled(torch.from_numpy(source), torch.from_numpy(chained), ends).numpy()
    return result


@pytest.fixture(params=["walk", "doubled"])
def follow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU's way to follow chains, and the GPU's in its place."""
    if request.param == "doubled":
        monkeypatch.setattr(shuffle, "_walk", doubled_in_numpy)


@pytest.mark.usefixtures("follow")
@pytest.mark.parametrize("passes", [1, 2, 4])
@pytest.mark.parametrize("delta", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [(8, 8), (13, 21), (40, 24)])
def test_sources_are_the_loops(size: tuple[int, int], delta: int, passes: int) -> None:
    """8×8 images leave nothing to visit within a distance of 5."""
    dy, dx = offsets([delta, delta], passes, *size, seed=passes)
    found = shuffle_sources(dy, dx, torch.tensor([delta, delta]))
    assert found.dtype == torch.int64
    assert found.shape == (2, size[0] * size[1])
    expected = [looped(y.numpy(), x.numpy(), delta) for y, x in zip(dy, dx, strict=True)]
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.usefixtures("follow")
def test_each_image_has_its_own_distance() -> None:
    """As float64, as the severity tables hold it."""
    deltas = [4, 1, 2, 1]
    dy, dx = offsets(deltas, 2, 20, 30, seed=0)
    found = shuffle_sources(dy, dx, torch.tensor(deltas, dtype=torch.float64))
    expected = [looped(y.numpy(), x.numpy(), d) for y, x, d in zip(dy, dx, deltas, strict=True)]
    np.testing.assert_array_equal(found.numpy(), expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(8, 24), st.integers(8, 24), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**32))
def test_any_size_distance_and_passes(height: int, width: int, delta: int, passes: int, seed: int) -> None:
    dy, dx = offsets([delta], passes, height, width, seed)
    found = shuffle_sources(dy, dx, torch.tensor([delta]))[0]
    np.testing.assert_array_equal(found.numpy(), looped(dy[0].numpy(), dx[0].numpy(), delta))


@pytest.mark.usefixtures("follow")
def test_a_row_that_all_copies_from_the_right() -> None:
    """Worked by hand: within distance 2 columns 8 … 3 of ten are visited, right to left, and each takes its right
    neighbour's new value, which is column 9's."""
    dy, dx = torch.zeros(1, 1, 10, 10, dtype=torch.int8), torch.ones(1, 1, 10, 10, dtype=torch.int8)
    found = shuffle_sources(dy, dx, torch.tensor([2]))[0].view(10, 10) % 10
    assert found[5].tolist() == [0, 1, 2, 9, 9, 9, 9, 9, 9, 9]
    assert found[2].tolist() == found[9].tolist() == list(range(10))
    assert found[8].tolist() == found[3].tolist() == found[5].tolist()


@pytest.mark.usefixtures("follow")
def test_copies_from_the_left_see_old_values() -> None:
    """Worked by hand: the left neighbour is visited later, so each value moves one place and no further."""
    dy, dx = torch.zeros(1, 1, 10, 10, dtype=torch.int8), torch.full((1, 1, 10, 10), -1, dtype=torch.int8)
    found = shuffle_sources(dy, dx, torch.tensor([2]))[0].view(10, 10) % 10
    assert found[5].tolist() == [0, 1, 2, 2, 3, 4, 5, 6, 7, 9]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 400), st.floats(0, 0.6), st.integers(0, 2**32))
def test_doubling_is_walking(count: int, share: float, seed: int) -> None:
    """Random pointers; those that go on point forwards, as later pixels are visited first."""
    rng = np.random.default_rng(seed)
    here = np.arange(count)
    chained = (rng.random(count) < share) & (here < count - 1)
    ahead = here + np.minimum(rng.integers(1, 40, count), count - 1 - here)
    source = np.where(chained, ahead, rng.integers(0, count, count))
    np.testing.assert_array_equal(doubled_in_numpy(source, chained), _walk(source, chained))


def test_doubling_follows_chains_of_64_pointers() -> None:
    """Six doublings: 63 links that go on, then one that ends, at pixel 5."""
    source, chained = np.arange(1, 71), np.arange(70) < 63
    source[63:] = 5
    expected = np.full(70, 5)
    np.testing.assert_array_equal(_walk(source, chained), expected)
    np.testing.assert_array_equal(doubled_in_numpy(source, chained), expected)
