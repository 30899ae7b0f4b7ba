"""Layers of networks that can be trained side by side, as one network: every layer is grouped, a group per copy.

Small networks then fill a large device together. Copy ``m`` owns the ``m``-th of equal parts of every parameter and of
the channels between layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from blemish.core.errors import InputError


def conv_copies(inputs: int, outputs: int, side: int, *, stride: int = 1, copies: int) -> nn.Conv2d:
    """A convolution per copy, without bias, that keeps the size but for its stride."""
    return nn.Conv2d(
        inputs * copies, outputs * copies, side, stride=stride, padding=side // 2, bias=False, groups=copies
    )


class LinearCopies(nn.Module):
    """A linear layer per copy; with one copy its parameters are those of an ordinary linear layer."""

    def __init__(self, inputs: int, outputs: int, copies: int) -> None:
        super().__init__()
        bound = inputs**-0.5
        self.weight = nn.Parameter(torch.empty(outputs * copies, inputs).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(outputs * copies).uniform_(-bound, bound))
        self.copies = copies

    def forward(self, features: Tensor) -> Tensor:
        """(B, copies · inputs) to (B, outputs), or to (B, copies, outputs)."""
        if self.copies == 1:
            return functional.linear(features, self.weight, self.bias)
        parts = features.view(len(features), self.copies, -1)
        weight = self.weight.view(self.copies, -1, parts.shape[-1])
        return torch.einsum("bmi,moi->bmo", parts, weight) + self.bias.view(self.copies, -1)


def join_channels(parts: Sequence[Tensor], copies: int) -> Tensor:
    """Channels of several layers beside each other, (B, copies · C, H, W), those of each copy together."""
    if copies == 1:
        return torch.cat(list(parts), dim=1)
    by_copy = [part.reshape(len(part), copies, -1, *part.shape[2:]) for part in parts]
    return torch.cat(by_copy, dim=2).flatten(1, 2)


def initialise(net: nn.Module) -> None:
    """Give convolutions He's random weights, each copy as if it were alone."""
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            # He's initialisation by fan-out; torch's own would count the outputs of all copies.
            fan_out = module.out_channels // module.groups * module.weight[0, 0].numel()
            nn.init.normal_(module.weight, std=(2 / fan_out) ** 0.5)


def split_copies(state: Mapping[str, Tensor], copies: int) -> list[dict[str, Tensor]]:
    """The state dicts of the single networks in a network of several copies."""
    for name, values in state.items():
        if values.ndim and values.shape[0] % copies:
            raise InputError(f"{name} of shape {tuple(values.shape)} is not made of {copies} equal parts")
    parts = {name: values.chunk(copies) if values.ndim else [values] * copies for name, values in state.items()}
    return [{name: values[number].clone() for name, values in parts.items()} for number in range(copies)]


def join_copies(states: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The state dict of a network of several copies, out of those of single ones."""
    first = states[0]
    return {
        name: torch.cat([state[name] for state in states]) if values.ndim else values for name, values in first.items()
    }
