"""The residual networks for CIFAR of He et al., CVPR 2016, section 4.2: three stages of 16, 32 and 64 channels.

Shortcuts between stages have no weights (option A): every other pixel, and channels of zeros around. The names of
parameters are the usual ones, so that pretrained files load: `blemish.models.torch_module.load_weights`.
"""

from __future__ import annotations

from functools import partial

from torch import Tensor, nn
from torch.nn import functional as F


class _Block(nn.Module):
    def __init__(self, before: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride, self.extra = stride, (channels - before) // 2

    def forward(self, x: Tensor) -> Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.stride > 1 or self.extra:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.extra, self.extra))
        return F.relu(out + x)


class CifarResNet(nn.Module):
    """A residual network of 6n + 2 layers for 32 × 32 images; input is normalised outside of it."""

    def __init__(self, blocks: int, *, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = self._stage(16, 16, blocks)
        self.layer2 = self._stage(16, 32, blocks)
        self.layer3 = self._stage(32, 64, blocks)
        self.linear = nn.Linear(64, classes)

    @staticmethod
    def _stage(before: int, channels: int, blocks: int) -> nn.Sequential:
        first = _Block(before, channels, channels // before)
        return nn.Sequential(first, *(_Block(channels, channels, 1) for _ in range(blocks - 1)))

    def forward(self, x: Tensor) -> Tensor:
        """Logits (B, classes)."""
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        logits: Tensor = self.linear(x.mean((2, 3)))
        return logits


resnet20 = partial(CifarResNet, 3)  # 0.27 million parameters
resnet32 = partial(CifarResNet, 5)  # 0.46
resnet44 = partial(CifarResNet, 7)  # 0.66
resnet56 = partial(CifarResNet, 9)  # 0.85
resnet110 = partial(CifarResNet, 18)  # 1.7
