"""Turning the hue of colours."""

from __future__ import annotations

import torch
from torch import Tensor

from blemish.ops.fused import fused
from blemish.ops.transfer import to_device


def turn_hue(images: Tensor, turns: Tensor) -> Tensor:
    """Add to HSV's H, in turns of the colour circle, cyclically. One channel has no hue and stays as it is.

    Every channel runs along the same trapezium of the hue, a third of a turn apart, between V − chroma and V.
    """
    if images.shape[1] == 1:
        return images
    kernels = fused("tones", images.device)
    if kernels is not None:
        turned: Tensor = kernels.turn_hue(images, turns)
        return turned
    red, green, blue = images[:, :1], images[:, 1:2], images[:, 2:]
    value = images.amax(1, keepdim=True)
    chroma = value - images.amin(1, keepdim=True)
    sixths = torch.where(value == green, blue - red + 2 * chroma, red - green + 4 * chroma)
    sixths = torch.where(value == red, green - blue, sixths).div_(chroma + (chroma <= 0)).add_(6 * turns)
    start = to_device(torch.tensor([5.0, 3.0, 1.0], dtype=torch.float32).view(1, 3, 1, 1), images.device)
    phase = (sixths + start).remainder_(6)
    ramp = torch.minimum(phase, 4 - phase).clamp_(0, 1)
    return value - ramp.mul_(chroma)
