"""Residual networks (He et al., 2016), wide ones (Zagoruyko and Komodakis, 2016) and a small convolutional one.

With ``copies`` above one a network is that many independent networks in one: see `blemish.models.copies`.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from blemish.models.copies import LinearCopies, conv_copies, initialise


class _Block(nn.Module):
    """Two 3×3 convolutions beside a shortcut; a bottleneck has 1×1, 3×3 (which carries the stride) and 1×1 ones.

    A wide bottleneck has ``wide`` times the channels inside, and as many as others outside.
    """

    def __init__(self, inputs: int, width: int, stride: int, copies: int, *, bottleneck: bool, wide: int = 1) -> None:
        super().__init__()
        layers = [(inputs, width, 3, stride), (width, width, 3, 1)]
        if bottleneck:
            inner = wide * width
            layers = [(inputs, inner, 1, 1), (inner, inner, 3, stride), (inner, 4 * width, 1, 1)]
        for number, (before, after, side, step) in enumerate(layers, start=1):
            self.add_module(f"conv{number}", conv_copies(before, after, side, stride=step, copies=copies))
            self.add_module(f"bn{number}", nn.BatchNorm2d(after * copies))
        self.depth, self.outputs = len(layers), layers[-1][1]
        self.downsample = nn.Sequential()
        if stride != 1 or inputs != self.outputs:
            self.downsample.append(conv_copies(inputs, self.outputs, 1, stride=stride, copies=copies))
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
        wide: int = 1,
        classes: int = 1000,
        small: bool = False,
        copies: int = 1,
    ) -> None:
        super().__init__()
        self.small, self.copies = small, copies
        self.conv1 = conv_copies(3, 64, 3 if small else 7, stride=1 if small else 2, copies=copies)
        self.bn1 = nn.BatchNorm2d(64 * copies)
        width, channels = 64, 64
        for number, depth in enumerate(layers, start=1):
            stage = nn.Sequential()
            for index in range(depth):
                stride = 2 if number > 1 and index == 0 else 1
                block = _Block(channels, width, stride, copies, bottleneck=bottleneck, wide=wide)
                stage.append(block)
                channels = block.outputs
            self.add_module(f"layer{number}", stage)
            width *= 2
        self.fc = LinearCopies(channels, classes, copies)
        initialise(self)

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
                    conv_copies(inputs, outputs, 3, stride=stride, copies=copies),
                    nn.BatchNorm2d(outputs * copies),
                    nn.ReLU(inplace=True),
                ]
            channels = outputs
        self.features = nn.Sequential(*layers)
        self.fc = LinearCopies(channels, classes, copies)
        initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """(B, copies · 3, H, W) to (B, classes), or to (B, copies, classes)."""
        return self.fc(self.features(images).mean((-2, -1)))  # type: ignore[no-any-return]


def resnet18(classes: int = 1000, *, copies: int = 1) -> ResNet:
    """ResNet-18 for images of about 224 pixels."""
    return ResNet((2, 2, 2, 2), classes=classes, copies=copies)


def resnet18_small(classes: int = 10, *, copies: int = 1) -> ResNet:
    """ResNet-18 for images of about 32 to 64 pixels."""
    return ResNet((2, 2, 2, 2), classes=classes, small=True, copies=copies)


def resnet50(classes: int = 1000, *, copies: int = 1) -> ResNet:
    """ResNet-50 for images of about 224 pixels."""
    return ResNet((3, 4, 6, 3), bottleneck=True, classes=classes, copies=copies)


def wide_resnet50_2(classes: int = 1000, *, copies: int = 1) -> ResNet:
    """ResNet-50 with twice the channels inside its bottlenecks, for images of about 224 pixels."""
    return ResNet((3, 4, 6, 3), bottleneck=True, wide=2, classes=classes, copies=copies)


def small_net(classes: int = 10, *, copies: int = 1) -> SmallNet:
    """A small network for images of about 32 pixels."""
    return SmallNet(classes=classes, copies=copies)
