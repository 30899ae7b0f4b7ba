"""What the distortions of LAION-C share: they are made in colour, and their pixel sizes are those of 224 pixels."""

from __future__ import annotations

import torch
from torch import Tensor

from blemish.corruptions.base import side_scale

__all__ = ["SOURCE", "as_colour", "back_to", "luma", "pixels"]

SOURCE = "LAION-C (Li et al., ICML 2025)"


def pixels(published: float, images: Tensor) -> int:
    """A length that was published for images of 224 pixels, in whole pixels of these images; at least 1."""
    return max(1, round(published * side_scale(*images.shape[-2:])))


def luma(levels: Tensor) -> Tensor:
    """Pillow's gray level of uint8 colours (B, 3, H, W), int32 (B, 1, H, W)."""
    values = levels.to(torch.int32)
    return (values[:, :1] * 19595 + values[:, 1:2] * 38470 + values[:, 2:] * 7471 + 32768) >> 16


def as_colour(images: Tensor) -> Tensor:
    """Three channels; gray images get three equal ones."""
    return images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images


def back_to(images: Tensor, result: Tensor) -> Tensor:
    """The result with as many channels as the images had."""
    return luma(result).to(result.dtype) if images.shape[1] == 1 else result
