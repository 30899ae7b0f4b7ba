"""SAR against a plain implementation, its recovery, and the layers it leaves alone."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from adapted_nets import CLASSES, FAST, images, parameters, small_net
from blemish.core.errors import InputError
from blemish.studies.adaptation.norm import UnsuitedError, with_batch_statistics
from blemish.studies.adaptation.sar import SAR, before_the_last_stage

MARGIN, RADIUS, RATE = 0.5, 0.05, 0.1
LIMIT = MARGIN * math.log(CLASSES)
Values = dict[str, Tensor]


def entropies(model: nn.Module, values: Mapping[str, Tensor], batch: Tensor) -> list[Tensor]:
    """Of each image, with these scales and shifts."""
    logits = torch.func.functional_call(model, dict(values), (batch,))
    return [-(row.softmax(0) * row.softmax(0).log()).sum() for row in logits]


def mean_gradient(of: list[Tensor], values: Values) -> tuple[float, list[Tensor]]:
    mean = torch.stack(of).mean()
    return mean.item(), list(torch.autograd.grad(mean, list(values.values())))


def plain_sar(model: nn.Module, batches: list[Tensor]) -> tuple[Values, float]:
    """θ and e after these batches, by the equations; at least one image is chosen in each."""
    model = with_batch_statistics(model)
    theta = {f"network.1.{key}": getattr(model.network[1], key).detach().clone() for key in ("weight", "bias")}
    speed = [torch.zeros(6), torch.zeros(6)]
    average = math.nan
    for batch in batches:
        at = {key: value.requires_grad_(True) for key, value in theta.items()}
        first = entropies(model, at, batch)
        chosen = [i for i, value in enumerate(first) if value.item() < LIMIT]
        _, gradient = mean_gradient([first[i] for i in chosen], at)
        length = math.sqrt(sum(float((part**2).sum()) for part in gradient))
        pairs = zip(at.items(), gradient, strict=True)
        up = {key: (value + RADIUS * part / length).detach().requires_grad_(True) for (key, value), part in pairs}
        second = entropies(model, up, batch)
        loss, gradient = mean_gradient([second[i] for i in chosen if second[i].item() < LIMIT], up)
        speed = [0.9 * old + part for old, part in zip(speed, gradient, strict=True)]
        steps = zip(theta.items(), speed, strict=True)
        theta = {key: (value - RATE * part).detach() for (key, value), part in steps}
        average = loss if math.isnan(average) else 0.9 * average + 0.1 * loss
    return theta, average


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_steps_against_a_plain_implementation(norm: str) -> None:
    batches = [images(seed) for seed in range(3)]
    for count in (1, 3):
        method = SAR(small_net(norm), margin=MARGIN, recover=0, optimiser=FAST)
        for batch in batches[:count]:
            method.adapt(batch)
        theta, average = plain_sar(small_net(norm), batches[:count])
        found = parameters(method)
        assert all(torch.allclose(found[key], value, atol=1e-5) for key, value in theta.items())
        assert not torch.allclose(found["network.1.weight"], torch.ones(6), atol=1e-3)
        assert method.average == pytest.approx(average, abs=1e-5)


def test_some_images_are_left_out() -> None:
    """Else the test above says nothing of the choice."""
    start = with_batch_statistics(small_net())
    sure = [value.item() < LIMIT for value in entropies(start, {}, images())]
    assert any(sure)
    assert not all(sure)


def test_where_nothing_is_chosen_only_momentum_moves() -> None:
    """After one step by −r · v, a batch without sure images moves by −r · 0.9 v, and e stays."""
    method = SAR(small_net(), margin=MARGIN, recover=0, optimiser=FAST)
    fresh = method.model.network[1].weight.detach().clone()
    method.margin = 1e-9
    method.adapt(images())
    assert torch.equal(method.model.network[1].weight, fresh)
    assert method.average is None
    method.margin = MARGIN
    method.adapt(images())
    first, average = method.model.network[1].weight.detach().clone(), method.average
    method.margin = 1e-9
    method.adapt(images(1))
    moved = method.model.network[1].weight.detach() - first
    # The step before had 0.9 · 0 of speed: nothing was chosen in the very first one.
    assert torch.allclose(moved, 0.9 * (first - fresh), atol=1e-6)
    assert method.average == average


def test_recovery() -> None:
    """Any e is below 9: the model and the optimiser are as at the start; e is none, or as released its last value."""
    for keep in (False, True):
        method = SAR(small_net(), margin=MARGIN, recover=9, keep_average=keep, optimiser=FAST)
        before = parameters(method)
        method.adapt(images())
        assert all(torch.equal(value, before[key]) for key, value in parameters(method).items())
        assert method.optimiser.state_dict()["state"] == {}
        assert (method.average is not None) == keep


def test_the_average_is_saved() -> None:
    method = SAR(small_net(), margin=MARGIN, recover=0, optimiser=FAST)
    method.adapt(images())
    other = SAR(small_net(), margin=MARGIN, recover=0, optimiser=FAST)
    other.load_state_dict(copy.deepcopy(method.state_dict()))
    method.adapt(images(1))
    other.adapt(images(1))
    assert other.average == method.average
    assert all(torch.equal(value, parameters(other)[key]) for key, value in parameters(method).items())


class Stages(nn.Module):
    """Layers with names as ResNets and vision transformers have them."""

    def __init__(self) -> None:
        super().__init__()
        self.bn1, self.layer3, self.layer4 = nn.BatchNorm2d(2), nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm2d(2))
        self.blocks = nn.ModuleList(nn.ModuleDict({"norm1": nn.LayerNorm(2)}) for _ in range(12))
        self.norm = nn.LayerNorm(2)


def test_the_last_stage_stays() -> None:
    kept = {name.rpartition(".")[0] for name in before_the_last_stage(Stages(), method="sar")}
    assert kept == {"bn1", "layer3", *(f"blocks.{i}.norm1" for i in range(9))}
    with pytest.raises(UnsuitedError, match="sar adapts the scales and shifts of normalisation layers before its end"):
        before_the_last_stage(nn.ModuleDict({"layer4": nn.BatchNorm2d(2)}), method="sar")


def test_refusals() -> None:
    with pytest.raises(InputError, match="margin 0, radius 0"):
        SAR(small_net(), margin=0)
    with pytest.raises(InputError, match="radius -1"):
        SAR(small_net(), radius=-1)
