"""A small arena: a few images, a network with batch norm, and methods of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import parse_condition
from blemish.corruptions.catalog import catalog
from blemish.data.array_source import array_source
from blemish.data.cache import load
from blemish.models.torch_module import from_module
from blemish.studies.adaptation.base import entropy
from blemish.studies.adaptation.methods import make_method
from blemish.studies.arena.adapting import Pace
from blemish.studies.arena.arena import Arena, Question

CLASSES = 4


def network(norm: str = "batch") -> nn.Module:
    torch.manual_seed(0)
    layer: nn.Module = nn.BatchNorm2d(6) if norm == "batch" else nn.GroupNorm(2, 6)
    net = nn.Sequential(nn.Conv2d(3, 6, 3, 2), layer, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    net.append(nn.Linear(6, CLASSES))
    nn.init.normal_(net[-1].weight, std=3.0)
    return net.eval()


def arena(folder: Path, *, norm: str = "batch", count: int = 24, pace: Pace | None = None, **changes: Any) -> Arena:
    import numpy as np

    pixels = np.random.default_rng(0).integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
    path = folder / "images.npz"
    if not path.exists():
        np.savez(path, images=pixels, labels=np.arange(count) % CLASSES)
    source = array_source(path)
    question = Question(
        **{
            "corruptions": ("brightness", "contrast"),
            "protocol": Protocol(preset="cifar"),
            "benchmark": "toy",
            "batch": 8,
            "methods": "cifar",
            "clean": 8,
            "catalog": catalog,
        }
        | changes
    )
    model = from_module(network(norm), name="toy", device=torch.device("cpu"))
    return Arena(model, load(source), source, question, folder / "arena", pace or Pace())


class OwnTent:
    """Entropy minimisation over the scales of batch norm, written anew."""

    cost = (1, 1)

    def __init__(self, network: nn.Module) -> None:
        self.network = network
        layers = [layer for layer in network.modules() if isinstance(layer, nn.BatchNorm2d)]
        self.optimiser = torch.optim.SGD([layer.weight for layer in layers], lr=0.1)

    def adapt(self, batch: Tensor) -> Tensor:
        logits: Tensor = self.network(batch)
        self.optimiser.zero_grad()
        entropy(logits).mean().backward()
        self.optimiser.step()
        return logits


class Common(nn.Module):
    """As methods of the common repository are: built of a model, called with floats in 0 … 1."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.seen: list[float] = []

    def forward(self, x: Tensor) -> Tensor:
        return self.forward_and_adapt(x)

    def forward_and_adapt(self, x: Tensor) -> Tensor:
        assert float(x.min()) >= 0
        assert float(x.max()) <= 1
        logits: Tensor = self.model(x + 0.001 * torch.rand_like(x))
        return logits


class Masking:
    """Writes into what it is given."""

    def __init__(self, network: nn.Module) -> None:
        self.network = network

    def adapt(self, batch: Tensor) -> Tensor:
        logits = self.network(batch)
        batch.zero_()
        return logits

    def predict(self, batch: Tensor) -> Tensor:
        return self.adapt(batch)


class OnlyAdapts(nn.Module):
    """A module without forward."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward_and_adapt(self, x: Tensor) -> Tensor:
        return self.model(x)


class TooFew(OnlyAdapts):
    """Gives scores of fewer classes than the network has."""

    def forward_and_adapt(self, x: Tensor) -> Tensor:
        return self.model(x)[:, 1:]


class Dear(OwnTent):
    """Its cost is one number."""

    cost = 3  # type: ignore[assignment]


def library(network: nn.Module) -> Any:
    """A method of the library, made on the network that one's own methods get."""
    return make_method("tent", network)


class Nothing:
    """No method at all."""

    def __init__(self, network: nn.Module) -> None:
        pass


def catalog_condition(text: str) -> Any:
    return parse_condition(text)
