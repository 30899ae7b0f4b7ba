"""Deterministic test pictures with smooth shapes, edges, texture, black and white."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.core.rng import CounterRng, as_ids


def pictures(count: int, channels: int, height: int, width: int, *, first: int = 0) -> Tensor:
    """Uint8 pictures (B, C, H, W); the same number always gives the same picture."""
    rng = CounterRng(99, as_ids(range(first, first + count)), "pictures")
    coarse = rng.uniforms("coarse", channels, 5, 7)
    smooth = F.interpolate(coarse, size=(height, width), mode="bilinear", align_corners=True)
    blocks = F.interpolate(rng.uniforms("blocks", channels, 6, 4), size=(height, width), mode="nearest")
    grain = rng.uniforms("grain", channels, height, width)
    return ((smooth * 0.9 + blocks * 0.5 + grain * 0.2 - 0.3).clamp(0, 1) * 255).to(torch.uint8)


def centre(images: Tensor, side: int) -> Tensor:
    """The square in the middle of pictures."""
    top, left = (round((n - side) / 2) for n in images.shape[-2:])
    return images[..., top : top + side, left : left + side]


def kinds(images: Tensor) -> dict[str, Tensor]:
    """The same pictures as tensors of every type and layout."""
    floats = images.to(torch.float64) / 255
    wide = torch.zeros(len(images), images.shape[1], images.shape[2] + 3, 2 * images.shape[3] + 1, dtype=images.dtype)
    strided = wide[..., 2:-1, 1::2]
    strided.copy_(images)
    return {
        **{str(kind): floats.to(kind) for kind in (torch.float16, torch.bfloat16, torch.float32, torch.float64)},
        "by the reciprocal": images.to(torch.float32) * (1 / 255),
        "with a gradient": floats.to(torch.float32).requires_grad_(),
        "between two levels": (floats + 0.3 / 255 * (1 - 2 * (floats > 0.5))).to(torch.float32),
        "channels last": images.contiguous(memory_format=torch.channels_last),
        "floats with channels last": floats.to(torch.float32).contiguous(memory_format=torch.channels_last),
        "columns first": images.transpose(2, 3).contiguous().transpose(2, 3),
        "images last": images.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2),
        "every other value": strided,
    }
