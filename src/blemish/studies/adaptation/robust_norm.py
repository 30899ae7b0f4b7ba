"""Robust batch norm: statistics that follow a stream, by which a network both learns and predicts."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from blemish.studies.adaptation.norm import BatchStatistics, UnsuitedError, batch_norm_layers


class RobustNorm(BatchStatistics):
    """A batch norm layer that normalises by its running statistics; those move while it is ``moving``.

    μ ← (1 − a) μ + a μ_batch, and the same for the variance, which divides by n; gradients flow through the batch's
    share. It normalises by the moved ones.
    """

    def __init__(self, layer: _BatchNorm, momentum: float) -> None:
        super().__init__(layer, 1.0)
        self.momentum, self.moving = momentum, False

    def forward(self, x: Tensor) -> Tensor:
        """The normalised batch."""
        assert self.running_mean is not None
        assert self.running_var is not None
        mean, variance = self.running_mean, self.running_var
        if self.moving:
            batch_variance, batch_mean = torch.var_mean(x, [0, *range(2, x.ndim)], correction=0)
            mean = (1 - self.momentum) * mean + self.momentum * batch_mean
            variance = (1 - self.momentum) * variance + self.momentum * batch_variance
            self.running_mean.copy_(mean.detach())
            self.running_var.copy_(variance.detach())
        shape = (1, -1, *(1,) * (x.ndim - 2))
        result = (x - mean.view(shape)) * (variance + self.eps).rsqrt().view(shape)
        return result if self.weight is None else result * self.weight.view(shape) + self.bias.view(shape)


def with_robust_norm(model: nn.Module, momentum: float, *, method: str) -> nn.Module:
    """A copy of a model, in evaluation mode, with robust batch norm; one without batch norm is refused."""
    copied = copy.deepcopy(model).eval()
    batch_norm_layers(copied, method=method)
    if isinstance(copied, _BatchNorm):
        raise UnsuitedError(method, "needs", "batch norm layers inside", model)
    for parent in list(copied.modules()):
        for name, child in parent.named_children():
            if isinstance(child, _BatchNorm):
                setattr(parent, name, RobustNorm(child, momentum))
    return copied
