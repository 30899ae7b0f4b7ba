"""The random views that CoTTA averages over, and those of other methods that have them from there."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.core.rng import CounterRng
from blemish.corruptions.base import per_image
from blemish.ops.filters import gaussian_blur
from blemish.ops.hue import turn_hue

_LUMA = (0.299, 0.587, 0.114)


def random_views(images: Tensor, rng: CounterRng, *, smooth: bool = True) -> Tensor:
    """Each image (float, in [0, 1]) changed at random, by draws of its own.

    The ranges are those of Wang et al., CVPR 2022, as released: brightness 0.6 … 1.4, contrast 0.7 … 1.3, saturation
    0.5 … 1.5, hue ± 0.06 turns, gamma 0.7 … 1.3, rotation by at most 15°, shift by at most an eighth of a side (there
    in whole pixels, a sixteenth of the image with its border, which is twice as wide), scale 0.9 … 1.1, a Gaussian blur
    of σ up to 0.5, a mirror image for one half, and noise of σ = 0.005. The order of the colour changes is fixed here,
    and random there. Views that are not ``smooth`` are ROID's (Marsden et al., WACV 2024): without blur and noise, and
    with a mirrored border instead of a continued one.
    """
    rank = rng.uniforms("views", 11).cpu().to(torch.float64)
    names = ("brightness", "contrast", "saturation", "hue", "gamma", "angle", "x", "y", "scale", "sigma", "mirror")
    draw = dict(zip(names, rank.T, strict=True))
    views = _coloured(images.clamp(0, 1), draw)
    if not smooth:
        return _moved(views, draw, border="reflection").clamp_(0, 1)
    views = _blurred(_moved(views, draw), 0.001 + 0.499 * draw["sigma"])
    return views.add(rng.normals("noise", *images.shape[1:]), alpha=0.005).clamp_(0, 1)


def strong_views(images: Tensor, rng: CounterRng) -> Tensor:
    """Each image (float, in [0, 1]) changed at random as for AdaContrast (Chen et al., CVPR 2022), by its own draws.

    With probability 0.8 brightness, contrast and saturation 0.6 … 1.4 and hue ± 0.1 turns, in this order (there in a
    random one); with 0.2 gray; with 0.5 a Gaussian blur of σ 0.1 … 2; a mirror image for one half. Nothing is cropped,
    as for CIFAR and ImageNet-C in Döbler et al.'s repository.
    """
    rank = rng.uniforms("strong", 9).cpu().to(torch.float64).T
    x = images.clamp(0, 1)
    brightness, contrast, saturation = _between(0.6, 1.4, rank[:3])
    tones = _toned(x, brightness, contrast, saturation, _between(-0.1, 0.1, rank[3]))
    x = torch.where(per_image(rank[4] < 0.8, x).bool(), tones, x)
    x = torch.where(per_image(rank[5] < 0.2, x).bool(), _gray(x), x)
    x = torch.where(per_image(rank[6] < 0.5, x).bool(), gaussian_blur(x, _between(0.1, 2.0, rank[7])), x)
    return torch.where(per_image(rank[8] < 0.5, x).bool(), x.flip(-1), x)


def mirrored(images: Tensor, rng: CounterRng) -> Tensor:
    """Each image as it is, or mirrored, with the same probability."""
    flips = rng.uniforms("mirror", 1)[:, 0] < 0.5
    return torch.where(per_image(flips, images).bool(), images.flip(-1), images)


def _between(low: float, high: float, rank: Tensor) -> Tensor:
    return low + (high - low) * rank


def _coloured(images: Tensor, draw: dict[str, Tensor]) -> Tensor:
    ranges = {"brightness": (0.6, 1.4), "contrast": (0.7, 1.3), "saturation": (0.5, 1.5), "hue": (-0.06, 0.06)}
    x = _toned(images, *(_between(*ends, draw[name]) for name, ends in ranges.items())).clamp(1e-8, 1)
    return x ** per_image(_between(0.7, 1.3, draw["gamma"]), x)


def _toned(x: Tensor, brightness: Tensor, contrast: Tensor, saturation: Tensor, turns: Tensor) -> Tensor:
    """Multiplied; drawn away from its mean gray; each pixel drawn away from its own gray; turned in hue."""
    x = (x * per_image(brightness, x)).clamp_(0, 1)
    x = torch.lerp(_gray(x).mean((1, 2, 3), keepdim=True), x, per_image(contrast, x)).clamp_(0, 1)
    x = torch.lerp(_gray(x), x, per_image(saturation, x)).clamp_(0, 1)
    return turn_hue(x, per_image(turns, x))


def _gray(images: Tensor) -> Tensor:
    if images.shape[1] == 1:
        return images
    luma = torch.tensor(_LUMA, device=images.device).view(1, 3, 1, 1)
    return (images * luma).sum(1, keepdim=True)


def _moved(images: Tensor, draw: dict[str, Tensor], *, border: str = "border") -> Tensor:
    """Rotated, scaled, shifted and mirrored about the centre; the border is continued, or mirrored."""
    angle = _between(-1, 1, draw["angle"]) * math.radians(15)
    scale = 1 / _between(0.9, 1.1, draw["scale"])
    mirror = torch.where(draw["mirror"] < 0.5, -1.0, 1.0)
    aspect = images.shape[-2] / images.shape[-1]
    x, y = (_between(-1, 1, draw[axis]) / 4 for axis in ("x", "y"))  # an eighth of a side, which is 2 long
    cosine, sine = scale * angle.cos(), scale * angle.sin()
    rows = [
        torch.stack([cosine * mirror, -sine * aspect, cosine * x - sine * aspect * y], 1),
        torch.stack([sine / aspect * mirror, cosine, sine / aspect * x + cosine * y], 1),
    ]
    theta = torch.stack(rows, 1).to(images.device, torch.float32)
    grid = F.affine_grid(theta, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode=border, align_corners=False)


def _blurred(images: Tensor, sigma: Tensor) -> Tensor:
    """A Gaussian of three taps: at σ = 0.5 the next ones would weigh less than a thousandth."""
    side = torch.exp(-0.5 / sigma**2)
    centre, side = per_image(1 / (1 + 2 * side), images), per_image(side / (1 + 2 * side), images)
    padded = F.pad(images, (1, 1, 1, 1), mode="replicate")
    rows = padded[..., 1:-1, :] * centre + (padded[..., :-2, :] + padded[..., 2:, :]) * side
    return rows[..., 1:-1] * centre + (rows[..., :-2] + rows[..., 2:]) * side
