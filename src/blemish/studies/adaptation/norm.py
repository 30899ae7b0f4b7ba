"""Normalisation layers: statistics of the batch instead of those of training, and the parameters that methods adapt."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from blemish.core.errors import InputError

_NORMS = (_BatchNorm, nn.LayerNorm, nn.GroupNorm, nn.modules.instancenorm._InstanceNorm)


class UnsuitedError(InputError):
    """A network that has nothing for a method to adapt; ``lack`` says so without naming the method."""

    def __init__(self, method: str, does: str, what: str, model: nn.Module) -> None:
        # With its preprocessing around it, a network is called by its own name.
        name = type(getattr(model, "network", model)).__name__
        self.lack = f"{name} has no {what}"
        super().__init__(f"{method} {does} {what}, and {name} has none; choose another method")


class BatchStatistics(nn.Module):
    """A batch norm layer that normalises by (1 − α) · statistics of training + α · statistics of the batch.

    The statistics of training stay as they are. Where ``unbiased``, the variance that is mixed in divides by n − 1;
    with α = 1 nothing is mixed, and it divides by n. Parameters and buffers are those of the layer it replaces, under
    the same names. With ``groups`` g > 1 the batch consists of groups, image i belonging to group i mod g, and each
    group has statistics of its own.
    """

    running_mean: Tensor | None
    running_var: Tensor | None

    def __init__(self, layer: _BatchNorm, alpha: float, *, unbiased: bool = False) -> None:
        super().__init__()
        self.eps, self.alpha, self.groups, self.unbiased = layer.eps, alpha, 1, unbiased
        self.weight, self.bias = layer.weight, layer.bias
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            self.register_buffer(name, getattr(layer, name))
        if alpha < 1 and self.running_mean is None:
            raise InputError("a batch norm layer without statistics of training; expected alpha = 1 for this model")

    def forward(self, x: Tensor) -> Tensor:
        """The normalised batch."""
        if x.numel() // x.shape[1] // self.groups < 2:
            raise InputError(f"a batch of shape {tuple(x.shape)} has no statistics; expected more values per channel")
        if self.alpha == 1:
            return self._by_batch(x)
        assert self.running_mean is not None
        assert self.running_var is not None
        over = [0, *range(2, x.ndim)]
        variance, mean = torch.var_mean(x, over, correction=int(self.unbiased))
        mean = (1 - self.alpha) * self.running_mean + self.alpha * mean
        variance = (1 - self.alpha) * self.running_var + self.alpha * variance
        return self._normalised(x, mean, variance)

    def _normalised(self, x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
        """By these statistics, of each channel, or of each image and channel; then scaled and shifted."""
        shape = (1, -1, *(1,) * (x.ndim - 2))
        if mean.ndim == 1:
            mean, variance = mean.view(shape), variance.view(shape)
        result = (x - mean) * (variance + self.eps).rsqrt()
        return result if self.weight is None else result * self.weight.view(shape) + self.bias.view(shape)

    def _by_batch(self, x: Tensor) -> Tensor:
        g = self.groups
        whole = x if g == 1 else x.reshape(len(x) // g, g * x.shape[1], *x.shape[2:])
        weight = self.weight if self.weight is None or g == 1 else self.weight.repeat(g)
        bias = self.bias if self.bias is None or g == 1 else self.bias.repeat(g)
        return F.batch_norm(whole, None, None, weight, bias, training=True, eps=self.eps).view(x.shape)


def with_batch_statistics(
    model: nn.Module, *, alpha: float = 1.0, unbiased: bool = False, method: str | None = None
) -> nn.Module:
    """A copy of a model, in evaluation mode, whose batch norm layers use the statistics of the batch.

    Where ``method`` is named, a model without batch norm layers is refused in its name.
    """
    if method is not None and not _batch_norms(model):
        raise UnsuitedError(method, "needs", "batch norm layers", model)
    return with_layers(model, partial(BatchStatistics, alpha=alpha, unbiased=unbiased))


def with_layers(model: nn.Module, make: Callable[[_BatchNorm], nn.Module]) -> nn.Module:
    """A copy of a model, in evaluation mode, with other layers in place of batch norm, each made of the one it was."""
    copied = copy.deepcopy(model)
    if isinstance(copied, _BatchNorm):
        return make(copied).eval()
    for parent in list(copied.modules()):
        for name, child in parent.named_children():
            if isinstance(child, _BatchNorm):
                setattr(parent, name, make(child))
    return copied.eval()


def _batch_norms(model: nn.Module) -> list[_BatchNorm]:
    return [layer for layer in model.modules() if isinstance(layer, _BatchNorm)]


def batch_norm_layers(model: nn.Module, *, method: str) -> list[_BatchNorm]:
    """The batch norm layers of a model, each with statistics of training; a model without any is refused."""
    layers = _batch_norms(model)
    if not layers:
        raise UnsuitedError(method, "needs", "batch norm layers", model)
    if any(layer.running_mean is None for layer in layers):
        raise UnsuitedError(method, "starts from", "statistics of training in each of its batch norm layers", model)
    return layers


@contextlib.contextmanager
def grouped(model: nn.Module, groups: int) -> Iterator[None]:
    """Statistics per group of images, for as long as it lasts; see `BatchStatistics`."""
    layers = [layer for layer in model.modules() if isinstance(layer, BatchStatistics)]
    try:
        for layer in layers:
            layer.groups = groups
        yield
    finally:
        for layer in layers:
            layer.groups = 1


def norm_parameters(model: nn.Module, *, method: str) -> dict[str, nn.Parameter]:
    """Scales and shifts of all normalisation layers by name; a model without any is refused."""
    parameters: dict[str, nn.Parameter] = {}
    for name, layer in model.named_modules():
        if isinstance(layer, (BatchStatistics, *_NORMS)):
            own = dict(layer.named_parameters(recurse=False))
            parameters |= {
                f"{name}.{key}".lstrip("."): value for key, value in own.items() if key in ("weight", "bias")
            }
    if not parameters:
        raise UnsuitedError(method, "adapts the", "scales and shifts of normalisation layers", model)
    return parameters
