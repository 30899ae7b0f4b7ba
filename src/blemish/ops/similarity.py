"""Structural similarity of images: SSIM, and MS-SSIM over several scales.

Wang, Bovik, Sheikh and Simoncelli, IEEE TIP 2004; Wang, Simoncelli and Bovik, Asilomar 2003. Both were defined for gray
images; of colour images each channel counts alike, so that a change of colour at the same brightness is seen.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.core.errors import InputError

WINDOW = 11
"""The side of the Gaussian window, in pixels; its standard deviation is 1.5."""

SCALE_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
"""What the five scales of MS-SSIM count, the finest first (measured with observers in 2003)."""

_SIGMA = 1.5
# (K · L)² of the papers, with K₁ = 0.01, K₂ = 0.03 and a range L of 1.
_C1, _C2 = 0.01**2, 0.03**2


class _Terms(NamedTuple):
    """Means over the places of a window, (B, C): of the whole index, and of contrast and structure alone."""

    whole: Tensor
    structure: Tensor


def ssim(first: Tensor, second: Tensor) -> Tensor:
    """SSIM of each pair in two uint8 batches (B, C, H, W), float32 (B,): 1 for equal images, lower for others.

    SSIM = (2 μ₁μ₂ + C₁)(2 σ₁₂ + C₂) / ((μ₁² + μ₂² + C₁)(σ₁² + σ₂² + C₂)), with means, variances and the covariance in a
    Gaussian window of 11 × 11 pixels, averaged over all places where the window lies inside the image.
    """
    _check(first, second)
    return _terms(_values(first), _values(second)).whole.mean(1)


def ms_ssim(first: Tensor, second: Tensor) -> Tensor:
    """MS-SSIM of each pair in two uint8 batches (B, C, H, W), float32 (B,), in 0 … 1.

    MS-SSIM = SSIM_M^w_M · Π_{j < M} cs_j^w_j over M scales, each made of the one before by means over 2 × 2 pixels; cs
    is SSIM without its first factor, and counts as 0 where it is negative. Images too small for five scales have as
    many as fit (`scales_of`), with weights that sum to 1 again.
    """
    _check(first, second)
    count = scales_of(first)
    # As published, the five sum to 1.0001.
    total = 1 if count == len(SCALE_WEIGHTS) else sum(SCALE_WEIGHTS[:count])
    weights = [weight / total for weight in SCALE_WEIGHTS[:count]]
    one, other = _values(first), _values(second)
    product = torch.ones(first.shape[:2], device=first.device)
    for scale, weight in enumerate(weights):
        if scale:
            one, other = F.avg_pool2d(one, 2), F.avg_pool2d(other, 2)
        terms = _terms(one, other)
        part = terms.whole if scale == count - 1 else terms.structure
        product = product * part.clamp_min(0).pow(weight)
    return product.mean(1)


def scales_of(images: Tensor) -> int:
    """How many scales of MS-SSIM images are large enough for: five from a shorter side of 176 pixels on.

    >>> [scales_of(torch.zeros(1, 3, side, side)) for side in (176, 64, 32, 11)]
    [5, 3, 2, 1]
    """
    side, count = min(images.shape[-2:]), 1
    while count < len(SCALE_WEIGHTS) and side // 2 >= WINDOW:
        side, count = side // 2, count + 1
    return count


def _check(first: Tensor, second: Tensor) -> None:
    for images in (first, second):
        if images.dtype != torch.uint8 or images.ndim != 4:
            raise InputError(f"images of {images.dtype} and shape {tuple(images.shape)}; expected uint8 (B, C, H, W)")
    if first.shape != second.shape:
        raise InputError(f"images of shapes {tuple(first.shape)} and {tuple(second.shape)}; expected the same")
    if min(first.shape[-2:]) < WINDOW:
        size = f"{first.shape[-2]}×{first.shape[-1]}"
        raise InputError(f"images of {size} pixels; SSIM needs at least {WINDOW}×{WINDOW}")


def _values(images: Tensor) -> Tensor:
    return images.to(torch.float32).div_(255)


def _terms(one: Tensor, other: Tensor) -> _Terms:
    means = _window(torch.cat([one, other]))
    # Variances do not change with an offset, and lose fewer digits around 0.
    low, high = one - 0.5, other - 0.5
    products = _window(torch.cat([low * low, high * high, low * high]))
    mean_one, mean_other = means.chunk(2)
    square_one, square_other, product = products.chunk(3)
    centred_one, centred_other = mean_one - 0.5, mean_other - 0.5
    variances = square_one - centred_one**2 + square_other - centred_other**2
    covariance = product - centred_one * centred_other
    structure = (2 * covariance + _C2) / (variances + _C2)
    luminance = (2 * mean_one * mean_other + _C1) / (mean_one**2 + mean_other**2 + _C1)
    return _Terms((luminance * structure).mean((-2, -1)), structure.mean((-2, -1)))


def _window(images: Tensor) -> Tensor:
    """Weighted means of all windows inside the images, by sums over neighbours: a convolution takes 14 times longer."""
    places = torch.arange(WINDOW, dtype=torch.float64) - WINDOW // 2
    taps = torch.exp(-(places**2) / (2 * _SIGMA**2))
    weights = (taps / taps.sum()).tolist()
    for axis in (-2, -1):
        length = images.shape[axis] - WINDOW + 1
        total = images.narrow(axis, 0, length) * weights[0]
        for tap in range(1, WINDOW):
            total.add_(images.narrow(axis, tap, length), alpha=weights[tap])
        images = total
    return images
