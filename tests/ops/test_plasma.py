"""Diamond-square fields: against a loop over the points of the whole map, square by square."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.plasma import _coarse_map, plasma, plasma_sizes


def wobbles(count: int, side: int, seed: int = 0) -> list[Tensor]:
    rng = np.random.default_rng(seed)
    return [torch.from_numpy(rng.uniform(-1, 1, (count, 3, n, n)).astype(np.float32)) for n in plasma_sizes(side)]


def looped(wobble: list[NDArray[np.float32]], decay: float) -> NDArray[np.float64]:
    """One map in the reference's order: all centres of a level, then all diamonds, in steps that halve each time."""
    side = 2 ** len(wobble)
    field = np.zeros((side, side))

    def mean(*points: tuple[int, int]) -> float:
        return sum(field[y % side, x % side] for y, x in points) / len(points)

    step, width = side, 100.0
    for random in wobble:
        half = step // 2
        for y in range(0, side, step):
            for x in range(0, side, step):
                corners = (y, x), (y + step, x), (y, x + step), (y + step, x + step)
                field[y + half, x + half] = mean(*corners) + width * width * random[0, y // step, x // step]
        for y in range(0, side, step):
            for x in range(0, side, step):
                for row, column, noise in ((y, x + half, random[1]), (y + half, x, random[2])):
                    around = (row - half, column), (row + half, column), (row, column - half), (row, column + half)
                    field[row, column] = mean(*around) + width * width * noise[y // step, x // step]
        step, width = half, width / decay
    field -= field.min()
    return field / field.max()


@pytest.mark.parametrize("side", [2, 4, 8, 32, 64])
def test_the_map_is_the_loops(side: int) -> None:
    """A decay per image, from the roughest in the tables to the smoothest."""
    decays = [1.4, 1.75, 2.0, 3.0]
    wobble = wobbles(len(decays), side)
    found = plasma(wobble, torch.tensor(decays, dtype=torch.float64))
    assert found.shape == (len(decays), 1, side, side)
    assert found.dtype == torch.float32
    for image, (field, decay) in enumerate(zip(found, decays, strict=True)):
        expected = looped([level[image].numpy() for level in wobble], decay)
        np.testing.assert_allclose(field[0].numpy(), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("levels", [1, 2, 3, 5])
def test_the_product_for_coarse_levels_is_the_loop(levels: int) -> None:
    """What a GPU does at once: here level i has the noise w² = (100/1.7ⁱ)² times the wobble."""
    wobble = wobbles(2, 2**levels)
    flat = torch.cat([level.flatten(1) * (100 / 1.7**i) ** 2 for i, level in enumerate(wobble)], dim=1)
    found = (flat @ _coarse_map(levels, torch.device("cpu"))).numpy()
    found -= found.min(1, keepdims=True)
    found /= found.max(1, keepdims=True)
    expected = [looped([level[image].numpy() for level in wobble], 1.7).ravel() for image in range(2)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("side", [8, 32, 128])
def test_a_gpu_makes_the_same_map(side: int, device: torch.device) -> None:
    wobble, decay = wobbles(2, side), torch.tensor([1.4, 2.0], dtype=torch.float64)
    there = plasma([level.to(device) for level in wobble], decay).cpu()
    np.testing.assert_allclose(there.numpy(), plasma(wobble, decay).numpy(), rtol=0, atol=2e-6)


def test_a_map_of_four_points_by_hand() -> None:
    """The first point is 0, so the centre is its own noise, and a diamond half of that plus its own, all times 10⁴."""
    wobble = [torch.tensor([0.4, 0.1, -0.3]).view(1, 3, 1, 1)]
    # 0, 0.4/2 + 0.1 = 0.3; 0.4/2 − 0.3 = −0.1, 0.4: from −0.1 to 0.4 is the range.
    expected = (np.array([[0, 0.3], [-0.1, 0.4]]) + 0.1) / 0.5
    found = plasma(wobble, torch.tensor([2.0], dtype=torch.float64))
    np.testing.assert_allclose(found[0, 0].numpy(), expected, rtol=0, atol=1e-6)


def test_maps_reach_from_nought_to_one() -> None:
    found = plasma(wobbles(5, 64), torch.linspace(1.2, 3.5, 5, dtype=torch.float64)).flatten(1)
    assert found.amin(1).tolist() == [0.0] * 5
    assert found.amax(1).tolist() == [1.0] * 5


@pytest.mark.parametrize("axes", [(-1,), (-2,), (-2, -1)])
def test_maps_are_periodic(axes: tuple[int, ...]) -> None:
    """Noise rolled by a quarter of the side gives the map rolled by as much; coarser noise cannot roll, so it is 0."""
    side, decay = 64, torch.tensor([1.7, 2.5], dtype=torch.float64)
    wobble = [level * (level.shape[-1] >= 4) for level in wobbles(2, side)]
    rolled = [level.roll([level.shape[-1] // 4] * len(axes), axes) for level in wobble]
    expected = plasma(wobble, decay).roll([side // 4] * len(axes), axes)
    np.testing.assert_allclose(plasma(rolled, decay).numpy(), expected.numpy(), rtol=0, atol=1e-6)


def test_a_map_does_not_depend_on_its_company() -> None:
    wobble, decay = wobbles(3, 32), torch.tensor([1.5, 2.0, 3.0], dtype=torch.float64)
    together = plasma(wobble, decay)
    for i in range(3):
        assert torch.equal(plasma([level[i : i + 1] for level in wobble], decay[i : i + 1])[0], together[i])


def test_the_noise_survives() -> None:
    wobble = wobbles(2, 16)
    before = [level.clone() for level in wobble]
    plasma(wobble, torch.tensor([2.0, 2.0], dtype=torch.float64))
    assert all(torch.equal(a, b) for a, b in zip(wobble, before, strict=True))


def test_sizes_of_the_noise() -> None:
    """Three values for each point that was there: all points but the first are made from one value each."""
    assert plasma_sizes(2) == [1]
    assert plasma_sizes(256) == [1, 2, 4, 8, 16, 32, 64, 128]
    for side in (8, 512):
        assert 1 + sum(3 * n * n for n in plasma_sizes(side)) == side * side
