"""Colour: luminance, gray levels and saturation."""

from __future__ import annotations

import torch
from torch import Tensor

LUMINANCE = (0.299, 0.587, 0.114)
"""What red, green and blue contribute to luminance (ITU-R BT.601)."""


def luminance(images: Tensor, weights: tuple[float, float, float] = LUMINANCE) -> Tensor:
    """ITU-R BT.601 luminance, or one with other weights, (B, 1, H, W); a copy of images that have one channel."""
    if images.shape[1] == 1:
        return images.clone()
    r, g, b = weights
    return (images[:, :1] * r).add_(images[:, 1:2], alpha=g).add_(images[:, 2:], alpha=b)


def luma(levels: Tensor) -> Tensor:
    """Pillow's gray level of uint8 colours (B, 3, H, W), int32 (B, 1, H, W)."""
    values = levels.to(torch.int32)
    return (values[:, :1] * 19595 + values[:, 1:2] * 38470 + values[:, 2:] * 7471 + 32768) >> 16


def as_colour(images: Tensor) -> Tensor:
    """Three channels; gray images get three equal ones."""
    return images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images


def back_to(images: Tensor, result: Tensor) -> Tensor:
    """The uint8 result with as many channels as the images had."""
    return luma(result).to(result.dtype) if images.shape[1] == 1 else result


def scale_saturation(images: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Replace HSV's S by clip(S · scale + shift). Grays have the hue of red, as by convention; one channel has no hue.

    Every channel keeps its relative distance from the largest: c → V − (V − c) · S′/S, with no conversion to HSV.
    """
    if images.shape[1] == 1:
        return images
    value = images.amax(1, keepdim=True)
    spread = value - images.amin(1, keepdim=True)
    gray = spread <= 0
    saturation = spread / (value + (value <= 0))
    wanted = saturation.mul_(scale).add_(shift).clamp_(0, 1).mul_(value)
    ratio = wanted / (spread + gray)
    out = value - (value - images).mul_(ratio)
    # Only green and blue move away from gray.
    reddened = wanted.mul_(gray)
    out[:, 1:] -= reddened
    return out
