"""Hue, saturation, value and lightness of colour images, batched, in floats.

Hue is counted in sextants, 0 … 6, from red over yellow, green, cyan, blue and magenta; a gray has the hue of red, as by
convention. Images with one channel are gray: they have a value and a lightness, and nothing that could be turned.
"""

from __future__ import annotations

import torch
from torch import Tensor

from blemish.ops.fused import fused

_SEXTANTS = 6


def hue(images: Tensor) -> Tensor:
    """The hue of (B, 3, H, W) images in sextants, (B, 1, H, W), each in [0, 6)."""
    red, green, blue = images[:, :1], images[:, 1:2], images[:, 2:]
    value = images.amax(1, keepdim=True)
    spread = value - images.amin(1, keepdim=True)
    turned = torch.where(value == green, blue - red + 2 * spread, red - green + 4 * spread)
    turned = torch.where(value == red, green - blue, turned)
    return turned.div_(spread.masked_fill_(spread == 0, 1)).remainder_(_SEXTANTS)


def hue_ramps(sextants: Tensor) -> Tensor:
    """Where each channel lies at a hue in [0, 6], from the smallest value (0) to the largest (1): (B, 3, H, W)."""
    red = (sextants - 3).abs_().sub_(1)
    green, blue = ((sextants - peak).abs_().neg_().add_(2) for peak in (2, 4))
    return torch.cat([red, green, blue], dim=1).clamp_(0, 1)


def shift_hsv(images: Tensor, turn: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """Turn the hue by sextants, and add to HSV's saturation and value, which are then clipped to [0, 1].

    The shifts are (B, 1, 1, 1). Of a gray image only the value changes.
    """
    kernels = fused("tones", images.device) if images.shape[1] == 3 else None
    if kernels is not None:
        shifted: Tensor = kernels.shift_hsv(images, turn, saturation, value)
        return shifted
    largest = images.amax(1, keepdim=True)
    wanted = (largest + value).clamp_(0, 1)
    if images.shape[1] == 1:
        return wanted
    share = (largest - images.amin(1, keepdim=True)).div_(largest + (largest <= 0))
    share = share.add_(saturation).clamp_(0, 1)
    ramps = hue_ramps(hue(images).add_(turn).remainder_(_SEXTANTS))
    return ramps.sub_(1).mul_(share.mul_(wanted)).add_(wanted)


def lightness(images: Tensor) -> Tensor:
    """HLS's lightness: halfway between a pixel's smallest and largest value, (B, 1, H, W)."""
    if images.shape[1] == 1:
        return images.clone()
    return images.amax(1, keepdim=True).add_(images.amin(1, keepdim=True)).mul_(0.5)


def lightness_room(light: Tensor) -> Tensor:
    """The largest spread between channels that is possible at a lightness; HLS's saturation is a share of it."""
    return (light * 2).sub_(1).abs_().neg_().add_(1)


def with_lightness(images: Tensor, old: Tensor, new: Tensor) -> Tensor:
    """Replace the lightness `old` by `new`, keeping hue and HLS's saturation; no conversion to HLS is needed.

    Every channel keeps its place between the pixel's extremes, and these move apart as there is room.
    """
    room = lightness_room(old)
    ratio = lightness_room(new).div_(room.masked_fill_(room <= 0, 1))
    return (images - old).mul_(ratio).add_(new)


def relit(images: Tensor, factor: Tensor) -> Tensor:
    """The lightness of images on grey levels times a factor, but at most 1.

    The reference rounds the lightness to a level before and down to one after. Float noise decides which way it rounds
    halfway between two levels; for images on levels that noise is the same everywhere.
    """
    kernels = fused("tones", images.device) if images.shape[1] == 3 else None
    if kernels is not None:
        made: Tensor = kernels.relit(images, factor)
        return made
    light = lightness(images)
    new = (light * 255).round_().mul_(factor).add_(2.0**-12).floor_().mul_(1 / 255).clamp_(max=1)
    return with_lightness(images, light, new)
