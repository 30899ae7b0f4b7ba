"""Simple statistics of corrupted pictures, as they were recorded of Syn2Nat's originals."""

from __future__ import annotations

import torch
from torch import Tensor


def statistics(images: Tensor, clean: Tensor) -> dict[str, Tensor]:
    """Of uint8 images (B, C, H, W) beside their clean one (C, H, W): one float64 value per image."""
    each = [_statistics(image[None], clean) for image in images]
    return {name: torch.cat([values[name] for values in each]) for name in each[0]}


def _statistics(images: Tensor, clean: Tensor) -> dict[str, Tensor]:
    levels = images.float()  # holds levels, their differences and squares exactly
    difference = levels - clean
    mean, square = _means(levels), _means(levels.square())
    return {
        "mean_abs_diff": _means(difference.abs()),
        "mse": _means(difference.square()),
        "mean": mean,
        "std": (square - mean.square()).clamp(min=0).sqrt(),
        "grad_x": _means(levels.diff(dim=-1).abs()),
        "frac_0": _means(images == 0),
        "frac_255": _means(images == 255),
    }


def _means(values: Tensor) -> Tensor:
    return values.mean((1, 2, 3), dtype=torch.float64)
