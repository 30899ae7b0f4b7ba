"""Residual networks (He et al., 2016) and a small convolutional one, for training and timing; alone, or side by side.

With ``copies`` above one a network is that many independent networks in one: every layer is grouped, so that small
networks fill a large device together. Copy ``m`` owns the ``m``-th of equal parts of every parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from blemish.core.errors import InputError


def _conv(inputs: int, outputs: int, side: int, *, stride: int = 1, copies: int) -> nn.Conv2d:
    return nn.Conv2d(
        inputs * copies, outputs * copies, side, stride=stride, padding=side // 2, bias=False, groups=copies
    )


class _Linear(nn.Module):
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


class _Block(nn.Module):
    """Two 3×3 convolutions beside a shortcut; a bottleneck has 1×1, 3×3 (which carries the stride) and 1×1 ones."""

    def __init__(self, inputs: int, width: int, stride: int, copies: int, *, bottleneck: bool) -> None:
        super().__init__()
        layers = [(inputs, width, 3, stride), (width, width, 3, 1)]
        if bottleneck:
            layers = [(inputs, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1)]
        for number, (before, after, side, step) in enumerate(layers, start=1):
            self.add_module(f"conv{number}", _conv(before, after, side, stride=step, copies=copies))
            self.add_module(f"bn{number}", nn.BatchNorm2d(after * copies))
        self.depth, self.outputs = len(layers), layers[-1][1]
        self.downsample = nn.Sequential()
        if stride != 1 or inputs != self.outputs:
            self.downsample.append(_conv(inputs, self.outputs, 1, stride=stride, copies=copies))
            self.downsample.append(nn.BatchNorm2d(self.outputs * copies))

    def forward(self, values: Tensor) -> Tensor:
        """Values of the same copies, with the block's width and stride."""
        inner = values
        for number in range(1, self.depth + 1):
            inner = self.get_submodule(f"bn{number}")(self.get_submodule(f"conv{number}")(inner))
            if number < self.depth:
                inner = functional.relu(inner)
        return functional.relu(inner + self.downsample(values))


class ResNet(nn.Module):
    """A residual network of four stages; the parameters are named as usual, so that usual weights fit.

    ``small`` replaces the stem for 224-pixel images (7×7, stride 2, and pooling) by a 3×3 convolution.
    """

    def __init__(
        self,
        layers: Sequence[int],
        *,
        bottleneck: bool = False,
        classes: int = 1000,
        small: bool = False,
        copies: int = 1,
    ) -> None:
        super().__init__()
        self.small, self.copies = small, copies
        self.conv1 = _conv(3, 64, 3 if small else 7, stride=1 if small else 2, copies=copies)
        self.bn1 = nn.BatchNorm2d(64 * copies)
        width, channels = 64, 64
        for number, depth in enumerate(layers, start=1):
            stage = nn.Sequential()
            for index in range(depth):
                stride = 2 if number > 1 and index == 0 else 1
                block = _Block(channels, width, stride, copies, bottleneck=bottleneck)
                stage.append(block)
                channels = block.outputs
            self.add_module(f"layer{number}", stage)
            width *= 2
        self.fc = _Linear(channels, classes, copies)
        _initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """(B, copies · 3, H, W) to (B, classes), or to (B, copies, classes)."""
        values = functional.relu(self.bn1(self.conv1(images)))
        if not self.small:
            values = functional.max_pool2d(values, 3, stride=2, padding=1)
        for number in range(1, 5):
            values = self.get_submodule(f"layer{number}")(values)
        return self.fc(values.mean((-2, -1)))  # type: ignore[no-any-return]


class SmallNet(nn.Module):
    """Six convolutions with batch normalisation, for images of about 32 pixels: the smallest net worth training."""

    def __init__(self, *, classes: int = 10, width: int = 32, copies: int = 1) -> None:
        super().__init__()
        self.copies = copies
        layers: list[nn.Module] = []
        channels = 3
        for outputs in (width, 2 * width, 4 * width):
            for inputs, stride in ((channels, 1), (outputs, 2)):
                layers += [
                    _conv(inputs, outputs, 3, stride=stride, copies=copies),
                    nn.BatchNorm2d(outputs * copies),
                    nn.ReLU(inplace=True),
                ]
            channels = outputs
        self.features = nn.Sequential(*layers)
        self.fc = _Linear(channels, classes, copies)
        _initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """(B, copies · 3, H, W) to (B, classes), or to (B, copies, classes)."""
        return self.fc(self.features(images).mean((-2, -1)))  # type: ignore[no-any-return]


def _initialise(net: nn.Module) -> None:
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            # He's initialisation by fan-out; torch's own would count the outputs of all copies.
            fan_out = module.out_channels // module.groups * module.weight[0, 0].numel()
            nn.init.normal_(module.weight, std=(2 / fan_out) ** 0.5)


def resnet18(classes: int = 1000, *, copies: int = 1) -> ResNet:
    """ResNet-18 for images of about 224 pixels."""
    return ResNet((2, 2, 2, 2), classes=classes, copies=copies)


def resnet18_small(classes: int = 10, *, copies: int = 1) -> ResNet:
    """ResNet-18 for images of about 32 to 64 pixels."""
    return ResNet((2, 2, 2, 2), classes=classes, small=True, copies=copies)


def resnet50(classes: int = 1000, *, copies: int = 1) -> ResNet:
    """ResNet-50 for images of about 224 pixels."""
    return ResNet((3, 4, 6, 3), bottleneck=True, classes=classes, copies=copies)


def small_net(classes: int = 10, *, copies: int = 1) -> SmallNet:
    """A small network for images of about 32 pixels."""
    return SmallNet(classes=classes, copies=copies)


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
