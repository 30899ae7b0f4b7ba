"""Batch norm whose statistics move while a network learns: robust batch norm, and the instance-aware one."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from blemish.core.errors import InputError
from blemish.studies.adaptation.norm import BatchStatistics, batch_norm_layers, with_layers


class MovingNorm(BatchStatistics):
    """Batch norm whose running statistics follow those of the batch, by ``momentum``, while it is ``moving``.

    It also moves in training mode, which methods never use, so that networks can be trained with it.
    """

    def __init__(self, layer: _BatchNorm, momentum: float) -> None:
        super().__init__(layer, 1.0)
        self.momentum, self.moving = momentum, False

    @property
    def moves(self) -> bool:
        """Whether the statistics of the batch count now."""
        return self.moving or self.training


class RobustNorm(MovingNorm):
    """Normalises by its running statistics: μ ← (1 − a) μ + a μ_batch, and the same for the variance.

    That of the batch divides by n; gradients flow through its share. It normalises by the moved ones.
    """

    def forward(self, x: Tensor) -> Tensor:
        """The normalised batch."""
        mean, variance = _running(self)
        if self.moves:
            batch_variance, batch_mean = torch.var_mean(x, [0, *range(2, x.ndim)], correction=0)
            moved = (1 - self.momentum) * mean + self.momentum * batch_mean
            spread = (1 - self.momentum) * variance + self.momentum * batch_variance
            mean.copy_(moved.detach())
            variance.copy_(spread.detach())
            mean, variance = moved, spread
        return self._normalised(x, mean, variance)


class InstanceAware(MovingNorm):
    """IABN (Gong et al., NeurIPS 2022): statistics of training, corrected where an image's own are far from them.

    For feature maps of h × w places: with μ_b and σ²_b, the running statistics, or while it ``moves`` those of the
    batch, and the mean μ_i and unbiased variance σ²_i of each image: μ = μ_b + ψ(μ_i − μ_b; k s), s = √((σ²_b + ε) /
    hw), and σ² = max(0, σ²_b + ψ(σ²_i − σ²_b; k t)), t = (σ²_b + ε) √(2 / (hw − 1)), where
    ψ(x; λ) = sign(x) max(|x| − λ, 0). A single place is normalised by μ_b and σ²_b.
    """

    def __init__(self, layer: _BatchNorm, momentum: float, k: float) -> None:
        super().__init__(layer, momentum)
        self.k = k

    def forward(self, x: Tensor) -> Tensor:
        """The normalised batch."""
        mean, variance = running = _running(self)
        if self.moves:
            if x.numel() // x.shape[1] < 2:
                raise InputError(f"a batch of shape {tuple(x.shape)} has no statistics; expected more values a channel")
            variance, mean = torch.var_mean(x, [0, *range(2, x.ndim)], correction=1)
            running[0].lerp_(mean.detach(), self.momentum)
            running[1].lerp_(variance.detach(), self.momentum)
        shape = (1, -1, *(1,) * (x.ndim - 2))
        mean, variance = mean.view(shape), variance.view(shape)
        places = math.prod(x.shape[2:])
        if places > 1:
            own_variance, own_mean = torch.var_mean(x, list(range(2, x.ndim)), correction=1, keepdim=True)
            around = variance + self.eps
            mean_slack, variance_slack = (around / places).sqrt(), around * math.sqrt(2 / (places - 1))
            mean = mean + _shrunk(own_mean - mean, self.k * mean_slack)
            variance = (variance + _shrunk(own_variance - variance, self.k * variance_slack)).clamp(min=0)
        return self._normalised(x, mean, variance)


def _running(layer: BatchStatistics) -> tuple[Tensor, Tensor]:
    assert layer.running_mean is not None
    assert layer.running_var is not None
    return layer.running_mean, layer.running_var


def _shrunk(x: Tensor, by: Tensor) -> Tensor:
    return x.sign() * F.relu(x.abs() - by)


def with_moving_norms(model: nn.Module, kind: type[MovingNorm], *, method: str, **settings: Any) -> nn.Module:
    """A copy of a model, in evaluation mode, with these layers for batch norm; one that has neither is refused.

    Layers of this kind that it already has, because it was trained with them, stay, with these settings.
    """
    if not any(isinstance(layer, kind) for layer in model.modules()):
        batch_norm_layers(model, method=method)
    changed = with_layers(model, partial(kind, **settings)).requires_grad_(False)
    for layer in changed.modules():
        if isinstance(layer, kind):
            for name, value in settings.items():
                setattr(layer, name, value)
    return changed


def instance_aware(network: nn.Module, *, k: float = 4.0) -> nn.Module:
    """A copy of a network, in training mode, with `InstanceAware` for batch norm: what to train for NOTE.

    Layers keep their momentum (0.1 where they have none). Parameters and buffers keep their names, so that its
    ``state_dict`` also fits the network it was made from. A network without batch norm is refused.
    """
    batch_norm_layers(network, method="instance_aware")

    def made(layer: _BatchNorm) -> InstanceAware:
        return InstanceAware(layer, 0.1 if layer.momentum is None else layer.momentum, k)

    return with_layers(network, made).train()


@contextlib.contextmanager
def moving(*networks: nn.Module) -> Iterator[None]:
    """Let the statistics of some networks move, for as long as it lasts."""
    layers = [layer for network in networks for layer in network.modules() if isinstance(layer, MovingNorm)]
    try:
        for layer in layers:
            layer.moving = True
        yield
    finally:
        for layer in layers:
            layer.moving = False
