"""Instance-aware batch norm: statistics of training, corrected where an image's own are far from them."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from blemish.studies.adaptation.norm import BatchStatistics, UnsuitedError, batch_norm_layers


class InstanceAware(BatchStatistics):
    """IABN (Gong et al., NeurIPS 2022), for feature maps of h × w places.

    With μ_b and σ²_b, the running statistics, or while it is ``moving`` those of the batch, and the mean μ_i and
    unbiased variance σ²_i of each image: μ = μ_b + ψ(μ_i − μ_b; k s), s = √((σ²_b + ε) / hw), and
    σ² = max(0, σ²_b + ψ(σ²_i − σ²_b; k t)), t = (σ²_b + ε) √(2 / (hw − 1)), where ψ(x; λ) = sign(x) max(|x| − λ, 0).
    A single place is normalised by μ_b and σ²_b. While it moves, running statistics follow by ``momentum``.
    """

    def __init__(self, layer: _BatchNorm, k: float, momentum: float) -> None:
        super().__init__(layer, 1.0)
        self.k, self.momentum, self.moving = k, momentum, False

    def forward(self, x: Tensor) -> Tensor:
        """The normalised batch."""
        assert self.running_mean is not None
        assert self.running_var is not None
        mean, variance = self.running_mean, self.running_var
        if self.moving:
            variance, mean = torch.var_mean(x, [0, *range(2, x.ndim)], correction=1)
            self.running_mean.lerp_(mean.detach(), self.momentum)
            self.running_var.lerp_(variance.detach(), self.momentum)
        shape = (1, -1, *(1,) * (x.ndim - 2))
        mean, variance = mean.view(shape), variance.view(shape)
        places = math.prod(x.shape[2:])
        if places > 1:
            own_variance, own_mean = torch.var_mean(x, list(range(2, x.ndim)), correction=1, keepdim=True)
            around = variance + self.eps
            mean_slack, variance_slack = (around / places).sqrt(), around * math.sqrt(2 / (places - 1))
            mean = mean + _shrunk(own_mean - mean, self.k * mean_slack)
            variance = (variance + _shrunk(own_variance - variance, self.k * variance_slack)).clamp(min=0)
        result = (x - mean) * (variance + self.eps).rsqrt()
        return result if self.weight is None else result * self.weight.view(shape) + self.bias.view(shape)


def _shrunk(x: Tensor, by: Tensor) -> Tensor:
    return x.sign() * F.relu(x.abs() - by)


def with_instance_awareness(model: nn.Module, k: float, momentum: float, *, method: str) -> nn.Module:
    """A copy of a model, in evaluation mode, with this layer for batch norm; one without batch norm is refused."""
    copied = copy.deepcopy(model).eval()
    batch_norm_layers(copied, method=method)
    if isinstance(copied, _BatchNorm):
        raise UnsuitedError(method, "needs", "batch norm layers inside", model)
    for parent in list(copied.modules()):
        for name, child in parent.named_children():
            if isinstance(child, _BatchNorm):
                setattr(parent, name, InstanceAware(child, k, momentum))
    return copied
