"""The views of MEMO: a random crop, mirrored or not, mixed with chains of mild changes (AugMix)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.core.rng import CounterRng
from blemish.corruptions.base import per_image

_CHAINS, _DEPTH = 3, 3
_PADDING = 4
_AREA, _ASPECT = (0.08, 1.0), (3 / 4, 4 / 3)
_GREY = 128.0


def augmixed(images: Tensor, rng: CounterRng, *, crop: str) -> Tensor:
    """Each image (levels 0 … 255) as a view of its own, float.

    As Zhang et al. (NeurIPS 2022) release it: a crop (`_cropped`), mirrored with probability ½; three chains of one to
    three changes each, out of autocontrast, equalise, rotate, solarise, shear and translate along x and y, and
    posterise, at severity 1 (levels u in 0.1 … 1); the chains are mixed by weights of Dirichlet's law with ones, and
    the mixture with the crop by m, uniform in 0 … 1: m · crop + (1 − m) · mixture. What is moved in from outside is
    grey 128. Changes are computed on float levels; there, on 8-bit pictures.
    """
    x = _cropped(images.to(torch.float32), rng, crop)
    mirrored = rng.uniforms("mirror", 1)[:, 0] < 0.5
    x = torch.where(per_image(mirrored, x).bool(), x.flip(-1), x)
    # Shares of Dirichlet's law with ones are exponential numbers over their sum; Beta's with ones is uniform.
    shares = -rng.uniforms("weights", _CHAINS).log()
    shares = shares / shares.sum(1, keepdim=True)
    kinds = rng.integers("kinds", _CHAINS, _DEPTH, high=len(_CHANGES)).cpu()
    depths = rng.integers("depths", _CHAINS, high=_DEPTH).cpu() + 1
    levels = (0.1 + 0.9 * rng.uniforms("levels", _CHAINS, _DEPTH)).cpu()
    signs = torch.where(rng.uniforms("signs", _CHAINS, _DEPTH) < 0.5, -1.0, 1.0).cpu()
    mixture = torch.zeros_like(x)
    for chain in range(_CHAINS):
        changed = x
        for depth in range(_DEPTH):
            here = torch.where(depths[:, chain] > depth, kinds[:, chain, depth], -1)
            changed = _changed(changed, here, levels[:, chain, depth], signs[:, chain, depth])
        mixture = mixture + per_image(shares[:, chain], x) * changed
    m = per_image(rng.uniforms("mixing", 1)[:, 0], x)
    return m * x + (1 - m) * mixture


def _changed(x: Tensor, kinds: Tensor, levels: Tensor, signs: Tensor) -> Tensor:
    """Each image with the change of its number; −1 for none."""
    result = x.clone()
    for number, change in enumerate(_CHANGES):
        rows = (kinds == number).nonzero()[:, 0]
        if len(rows):
            there = rows.to(x.device)
            result[there] = change(x[there], levels[rows], signs[rows])
    return result


def _cropped(x: Tensor, rng: CounterRng, crop: str) -> Tensor:
    draw = rng.uniforms("crop", 4).cpu().to(torch.float64)
    height, width = x.shape[-2:]
    if crop == "cifar":
        padded = F.pad(x, (_PADDING,) * 4)
        top, left = ((2 * _PADDING + 1) * draw[:, :2]).floor().long().T.tolist()
        rows = zip(padded, top, left, strict=True)
        return torch.stack([image[:, t : t + height, s : s + width] for image, t, s in rows])
    low, high = (math.log(value) for value in _ASPECT)
    area = _AREA[0] + (_AREA[1] - _AREA[0]) * draw[:, 0]
    aspect = torch.exp(low + (high - low) * draw[:, 1])
    # Shares of each side; a crop that would not fit is cut to the image.
    wide, tall = (area * aspect).sqrt().clamp(max=1), (area / aspect).sqrt().clamp(max=1)
    x0, y0 = (1 - wide) * (2 * draw[:, 2] - 1), (1 - tall) * (2 * draw[:, 3] - 1)
    return _affine(x, wide, torch.zeros_like(wide), x0, torch.zeros_like(wide), tall, y0)


def _affine(x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor, f: Tensor) -> Tensor:
    """Bilinear; a place (u, v) in −1 … 1 shows what is at (a u + b v + c, d u + e v + f); outside it is grey."""
    theta = torch.stack([torch.stack([a, b, c], 1), torch.stack([d, e, f], 1)], 1)
    grid = F.affine_grid(theta.to(x.device, x.dtype), list(x.shape), align_corners=False)
    return F.grid_sample(x - _GREY, grid, mode="bilinear", padding_mode="zeros", align_corners=False) + _GREY


def _autocontrast(x: Tensor, _levels: Tensor, _signs: Tensor) -> Tensor:
    low, high = x.amin((2, 3), keepdim=True), x.amax((2, 3), keepdim=True)
    return torch.where(high > low, (x - low) * (255 / (high - low).clamp_min(1e-6)), x)


def _equalised(x: Tensor, _levels: Tensor, _signs: Tensor) -> Tensor:
    """As Pillow does it: the share of lower levels, in steps of all but the highest level's count over 255."""
    count, channels, height, width = x.shape
    levels = x.round().clamp(0, 255).long().view(count * channels, -1)
    histogram = torch.zeros(count * channels, 256, dtype=torch.long, device=x.device)
    histogram.scatter_add_(1, levels, torch.ones_like(levels))
    last = histogram.gather(1, levels.amax(1, keepdim=True))
    step = (height * width - last) // 255
    before = histogram.cumsum(1) - histogram
    table = ((before + step // 2) // step.clamp(min=1)).clamp(0, 255)
    table = torch.where(step == 0, torch.arange(256, device=x.device), table)
    return table.gather(1, levels).view(x.shape).to(x.dtype)


def _rotated(x: Tensor, levels: Tensor, signs: Tensor) -> Tensor:
    angle = torch.deg2rad((3 * levels).floor().to(torch.float64)) * signs
    ratio = x.shape[-2] / x.shape[-1]
    zero = torch.zeros_like(angle)
    return _affine(x, angle.cos(), -angle.sin() * ratio, zero, angle.sin() / ratio, angle.cos(), zero)


def _solarised(x: Tensor, levels: Tensor, _signs: Tensor) -> Tensor:
    limit = per_image((256 - (25.6 * levels).floor()).to(x.device), x)
    return torch.where(x < limit, x, 255 - x)


def _sheared_x(x: Tensor, levels: Tensor, signs: Tensor) -> Tensor:
    """As Pillow does it, about the corner at the top left: the first row stays in its place."""
    one, zero = torch.ones_like(levels), torch.zeros_like(levels)
    slope = 0.03 * levels * signs * x.shape[-2] / x.shape[-1]
    return _affine(x, one, slope, slope, zero, one, zero)


def _sheared_y(x: Tensor, levels: Tensor, signs: Tensor) -> Tensor:
    one, zero = torch.ones_like(levels), torch.zeros_like(levels)
    slope = 0.03 * levels * signs * x.shape[-1] / x.shape[-2]
    return _affine(x, one, zero, zero, slope, one, slope)


def _translated(x: Tensor, levels: Tensor, signs: Tensor, *, along: int) -> Tensor:
    side = x.shape[along]
    shift = (levels * side / 30).floor() * signs * 2 / side
    one, zero = torch.ones_like(levels), torch.zeros_like(levels)
    moves = (shift, zero) if along == -1 else (zero, shift)
    return _affine(x, one, zero, moves[0], zero, one, moves[1])


def _translated_x(x: Tensor, levels: Tensor, signs: Tensor) -> Tensor:
    return _translated(x, levels, signs, along=-1)


def _translated_y(x: Tensor, levels: Tensor, signs: Tensor) -> Tensor:
    return _translated(x, levels, signs, along=-2)


def _posterised(x: Tensor, _levels: Tensor, _signs: Tensor) -> Tensor:
    """To four bits, at every level of severity 1."""
    return x.div(16).floor() * 16


_CHANGES: tuple[Callable[[Tensor, Tensor, Tensor], Tensor], ...] = (
    _autocontrast,
    _equalised,
    _rotated,
    _solarised,
    _sheared_x,
    _sheared_y,
    _translated_x,
    _translated_y,
    _posterised,
)
