"""DeYO against a plain implementation, and its shuffled tiles."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from adapted_nets import CLASSES, FAST, images, parameters, small_net
from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.adaptation.deyo import DeYO, shuffled
from blemish.studies.adaptation.norm import with_batch_statistics

RATE, DROP = 0.1, 0.05
SCALE = math.log(CLASSES)


def draws(numbers: list[int], step: int = 0) -> CounterRng:
    """Those of DeYO for these images of a batch."""
    return CounterRng(0, torch.tensor(numbers), f"deyo {step}")


def plain_shuffled(image: Tensor, order: list[int], grid: int) -> Tensor:
    """Tile ``order[i]`` of the image goes to place i, row by row."""
    side = image.shape[-1] // grid
    result = torch.empty_like(image)
    for to, source in enumerate(order):
        (r, c), (y, x) = divmod(to, grid), divmod(source, grid)
        tile = image[:, y * side : (y + 1) * side, x * side : (x + 1) * side]
        result[:, r * side : (r + 1) * side, c * side : (c + 1) * side] = tile
    return result


class TestShuffled:
    def test_against_a_plain_implementation(self) -> None:
        batch = images(count=5)
        found = shuffled(batch, 4, draws([0, 1, 2, 3, 4]))
        orders = draws([0, 1, 2, 3, 4]).permutations("tiles", 16).tolist()
        assert len({tuple(order) for order in orders}) == 5
        for image, order, mixed in zip(batch, orders, found, strict=True):
            assert torch.equal(mixed, plain_shuffled(image, order, 4))

    def test_one_tile_is_the_image(self) -> None:
        assert torch.equal(shuffled(images(), 1, draws(list(range(16)))), images())

    def test_sides_that_do_not_fit(self) -> None:
        """12 = 2 · 5 + 2: shuffled at 10 pixels, and back; an even image stays as it is."""
        found = shuffled(images(), 5, draws(list(range(16))))
        assert found.shape == images().shape
        assert found.is_floating_point()
        even = torch.full((2, 3, 13, 11), 7, dtype=torch.uint8)
        assert torch.allclose(shuffled(even, 4, draws([0, 1])), even.float())
        with pytest.raises(InputError, match="images of 12 × 12 pixels; expected at least 13 × 13"):
            shuffled(images(), 13, draws(list(range(16))))


def plain_step(model: nn.Module, batch: Tensor) -> tuple[list[Tensor], int, int]:
    """Scales and shifts after the first step, and how many images were sure and chosen."""
    layer = model.network[1]
    logits = model(batch)
    p = logits.softmax(1)
    uncertainty = [-(row * row.log()).sum() for row in p]
    sure = [i for i, value in enumerate(uncertainty) if value.item() < 0.5 * SCALE]
    orders = draws(sure).permutations("tiles", 16).tolist()
    destroyed = torch.stack([plain_shuffled(batch[i], order, 4) for i, order in zip(sure, orders, strict=True)])
    with torch.no_grad():
        after = model(destroyed).softmax(1)
    terms = []
    for place, i in enumerate(sure):
        label = int(p[i].argmax())
        fall = p[i, label].item() - after[place, label].item()
        if fall > DROP:
            terms.append((math.exp(0.4 * SCALE - uncertainty[i].item()) + math.exp(fall)) * uncertainty[i])
    gradients = torch.autograd.grad(torch.stack(terms).mean(), [layer.weight, layer.bias])
    changed = [value - RATE * part for value, part in zip((layer.weight, layer.bias), gradients, strict=True)]
    return changed, len(sure), len(terms)


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_one_step_against_a_plain_implementation(norm: str) -> None:
    batch = images(3, count=32)
    method = DeYO(small_net(norm), drop=DROP, optimiser=FAST)
    (weight, bias), sure, chosen = plain_step(with_batch_statistics(small_net(norm)), batch)
    assert 0 < chosen < sure < 32
    before = parameters(method)
    method.adapt(batch)
    found = parameters(method)
    assert torch.allclose(found["network.1.weight"], weight, atol=1e-5)
    assert torch.allclose(found["network.1.bias"], bias, atol=1e-5)
    assert not torch.allclose(found["network.1.weight"], before["network.1.weight"], atol=1e-4)


def test_where_nothing_is_chosen_nothing_changes() -> None:
    """Not even by momentum."""
    for changes in ({"margin": 1e-9}, {"drop": 0.999}):
        method = DeYO(small_net(), drop=DROP, optimiser=FAST)
        method.adapt(images(3))
        before = parameters(method)
        for name, value in changes.items():
            setattr(method, name, value)
        method.adapt(images(4))
        assert all(torch.equal(value, before[key]) for key, value in parameters(method).items())


def test_refusals() -> None:
    with pytest.raises(InputError, match="margin 0, weight_margin"):
        DeYO(small_net(), margin=0)
    with pytest.raises(InputError, match="drop 1 and grid 4 for DeYO"):
        DeYO(small_net(), drop=1)
