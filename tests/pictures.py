"""Deterministic test pictures with smooth shapes, edges, texture, black and white."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.rng import Words, as_ids


def pictures(count: int, channels: int, height: int, width: int, *, first: int = 0) -> Tensor:
    """Uint8 pictures (B, C, H, W); the same number always gives the same picture."""
    words = Words(99, as_ids(range(first, first + count)), "pictures")
    coarse = words.uniforms("coarse", channels, 5, 7)
    smooth = F.interpolate(coarse, size=(height, width), mode="bilinear", align_corners=True)
    blocks = F.interpolate(words.uniforms("blocks", channels, 6, 4), size=(height, width), mode="nearest")
    grain = words.uniforms("grain", channels, height, width)
    return ((smooth * 0.9 + blocks * 0.5 + grain * 0.2 - 0.3).clamp(0, 1) * 255).to(torch.uint8)


def centre(images: Tensor, side: int) -> Tensor:
    """The square in the middle of pictures."""
    top, left = (round((n - side) / 2) for n in images.shape[-2:])
    return images[..., top : top + side, left : left + side]
