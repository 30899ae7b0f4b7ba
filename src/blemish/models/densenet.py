"""DenseNet-121 (Huang et al., CVPR 2017), for training; alone, or as several copies (`blemish.models.copies`)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from blemish.models.copies import LinearCopies, conv_copies, initialise, join_channels

_FIRST_CHANNELS = 64

# A layer first reduces what it gets to this many times the channels that it adds.
_BOTTLENECK = 4


class _Layer(nn.Module):
    """Adds ``growth`` channels, made of all before them."""

    def __init__(self, inputs: int, growth: int, copies: int) -> None:
        super().__init__()
        inner = _BOTTLENECK * growth
        self.norm1 = nn.BatchNorm2d(inputs * copies)
        self.conv1 = conv_copies(inputs, inner, 1, copies=copies)
        self.norm2 = nn.BatchNorm2d(inner * copies)
        self.conv2 = conv_copies(inner, growth, 3, copies=copies)

    def forward(self, values: Tensor) -> Tensor:
        """The new channels."""
        inner = self.conv1(functional.relu(self.norm1(values)))
        return self.conv2(functional.relu(self.norm2(inner)))  # type: ignore[no-any-return]


class _Block(nn.Module):
    """Layers of which each sees the channels of all layers before it."""

    def __init__(self, inputs: int, layers: int, growth: int, copies: int) -> None:
        super().__init__()
        self.copies = copies
        for number in range(layers):
            self.add_module(f"denselayer{number + 1}", _Layer(inputs + number * growth, growth, copies))

    def forward(self, values: Tensor) -> Tensor:
        """The channels that came in and those that were added."""
        for layer in self.children():
            values = join_channels([values, layer(values)], self.copies)
        return values


class _Transition(nn.Module):
    """Halves the channels and the size."""

    def __init__(self, inputs: int, copies: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs * copies)
        self.conv = conv_copies(inputs, inputs // 2, 1, copies=copies)

    def forward(self, values: Tensor) -> Tensor:
        """Values of half the channels and size."""
        return functional.avg_pool2d(self.conv(functional.relu(self.norm(values))), 2)


class DenseNet(nn.Module):
    """A densely connected network; the parameters are named as usual, so that usual weights fit."""

    def __init__(self, layers: Sequence[int], *, growth: int = 32, classes: int = 1000, copies: int = 1) -> None:
        super().__init__()
        self.features = nn.Sequential()
        self.features.add_module("conv0", conv_copies(3, _FIRST_CHANNELS, 7, stride=2, copies=copies))
        self.features.add_module("norm0", nn.BatchNorm2d(_FIRST_CHANNELS * copies))
        self.features.add_module("relu0", nn.ReLU(inplace=True))
        self.features.add_module("pool0", nn.MaxPool2d(3, stride=2, padding=1))
        channels = _FIRST_CHANNELS
        for number, depth in enumerate(layers, start=1):
            self.features.add_module(f"denseblock{number}", _Block(channels, depth, growth, copies))
            channels += depth * growth
            if number < len(layers):
                self.features.add_module(f"transition{number}", _Transition(channels, copies))
                channels //= 2
        self.features.add_module("norm5", nn.BatchNorm2d(channels * copies))
        self.classifier = LinearCopies(channels, classes, copies)
        initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """(B, copies · 3, H, W) to (B, classes), or to (B, copies, classes)."""
        values = functional.relu(self.features(images))
        return self.classifier(values.mean((-2, -1)))  # type: ignore[no-any-return]


def densenet121(classes: int = 1000, *, copies: int = 1) -> DenseNet:
    """DenseNet-121 for images of about 224 pixels."""
    return DenseNet((6, 12, 24, 16), classes=classes, copies=copies)
