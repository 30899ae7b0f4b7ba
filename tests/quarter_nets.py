"""Images of which one quarter is the brightest, and small networks that find it while they can."""

from __future__ import annotations

from pathlib import Path

import numpy as np

NET = """
import torch
from torch import nn
from blemish.models.base import Classifier, Preprocessing


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x):
        return 20 * nn.functional.adaptive_avg_pool2d(self.norm(x), 2).mean(1).flatten(1)


def build():
    return Classifier("net", "torch", Net().eval(), "hash", preprocessing=Preprocessing())


def grouped():
    return nn.Sequential(nn.GroupNorm(1, 3), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 4)).eval()


def unnormalised():
    return nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 4)).eval()


def function():
    return lambda images: images.float().mean((2, 3))
"""


def write_quarters(folder: Path) -> None:
    """Forty images as ``data.npz``, and the networks as a module ``quarter_net``."""
    (folder / "quarter_net.py").write_text(NET)
    rng = np.random.default_rng(0)
    images = rng.integers(60, 180, (40, 16, 16, 3)).astype(np.uint8)
    labels = np.arange(40) % 4
    for image, label in zip(images, labels, strict=True):
        image[8 * (label // 2) : 8 * (label // 2) + 8, 8 * (label % 2) : 8 * (label % 2) + 8] += 6
    np.savez(folder / "data.npz", images=images, labels=labels)
