"""Weights for LPIPS by a formula, and two pairs of images: what recorded values were made with."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_LAYERS = {0: (64, 3, 11), 3: (192, 64, 5), 6: (384, 192, 3), 8: (256, 384, 3), 10: (256, 256, 3)}


def _waves(*shape: int, step: float) -> Tensor:
    return torch.sin(torch.arange(math.prod(shape), dtype=torch.float64) * step).to(torch.float32).view(shape)


def network_weights() -> dict[str, Tensor]:
    """AlexNet's, under torchvision's names."""
    weights = {}
    for place, (outputs, inputs, kernel) in _LAYERS.items():
        scale = 1.5 / math.sqrt(inputs * kernel**2)
        weights[f"features.{place}.weight"] = scale * _waves(outputs, inputs, kernel, kernel, step=1.7 + place)
        weights[f"features.{place}.bias"] = 0.1 * _waves(outputs, step=0.9)
    return weights


def linear_weights() -> dict[str, Tensor]:
    """Those of LPIPS itself."""
    sizes = [outputs for outputs, _, _ in _LAYERS.values()]
    return {f"lin{i}.model.1.weight": _waves(1, n, 1, 1, step=1.3).abs() for i, n in enumerate(sizes)}


def images() -> tuple[Tensor, Tensor]:
    """Two pairs of 40 × 48 pixels, uint8 (2, 3, 40, 48)."""
    first = (127 + 120 * _waves(2, 3, 40, 48, step=0.37)).to(torch.uint8)
    return first, (first.float() * 0.7 + 30 * _waves(2, 3, 40, 48, step=2.1) + 20).clamp(0, 255).to(torch.uint8)
