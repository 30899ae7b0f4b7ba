"""Wide residual networks for small images (Zagoruyko and Komodakis, BMVC 2016)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from blemish.core.errors import InputError


class _Block(nn.Module):
    """Two 3×3 convolutions, each after normalisation and ReLU, with dropout between, beside a shortcut."""

    def __init__(self, inside: int, outside: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.BatchNorm2d(inside), nn.BatchNorm2d(outside)
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.shortcut = nn.Conv2d(inside, outside, 1, stride, bias=False) if (inside, stride) != (outside, 1) else None

    def forward(self, images: Tensor) -> Tensor:
        active = F.relu(self.norm1(images))
        beside = images if self.shortcut is None else self.shortcut(active)
        deep: Tensor = self.conv2(self.dropout(F.relu(self.norm2(self.conv1(active)))))
        return deep + beside


class WideResNet(nn.Module):
    """WRN-depth-width. The MSCR paper's net is WRN-28-10 with dropout 0.3.

    >>> sum(p.numel() for p in WideResNet(16, 1, classes=10).parameters())
    175066
    """

    def __init__(
        self, depth: int = 28, width: int = 10, *, classes: int, channels: int = 3, dropout: float = 0.3
    ) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6 or width < 1:
            raise InputError(f"WRN-{depth}-{width}; expected a depth of 10, 16, 22, 28, … and a width of 1 or more")
        blocks = (depth - 4) // 6
        self.stem = nn.Conv2d(channels, 16, 3, 1, 1, bias=False)
        layers: list[nn.Module] = []
        inside = 16
        for stage, outside in enumerate((16 * width, 32 * width, 64 * width)):
            for block in range(blocks):
                layers.append(_Block(inside, outside, 2 if stage and not block else 1, dropout))
                inside = outside
        self.blocks = nn.Sequential(*layers)
        self.norm = nn.BatchNorm2d(inside)
        self.head = nn.Linear(inside, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Logits of (B, C, H, W) images."""
        features = F.relu(self.norm(self.blocks(self.stem(images))))
        logits: Tensor = self.head(features.mean((2, 3)))
        return logits


def wrn_16_4(classes: int = 10) -> WideResNet:
    """WRN-16-4 without dropout: 2.7 million parameters, for `blemish train-overlap --arch` and the like.

    >>> sum(p.numel() for p in wrn_16_4().parameters())
    2748890
    """
    return WideResNet(16, 4, classes=classes, dropout=0.0)
