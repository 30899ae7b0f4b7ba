"""C̄'s noises with a given spectrum: brownish noise, and holes where blue noise is low."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.cbar.published import by_magnitude, float64_per_image, unit, with_noise
from blemish.corruptions.severity import Params
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.fourier import transformed

# No pixel of blue noise with standard deviation 1 lies as low as that: its law is close to the normal one.
_NOWHERE = -6.0


class Phases(NamedTuple):
    """The phases of the left half of a spectrum and of its middle column, in radians, (B, n, H, ⌈W/2⌉)."""

    phases: Tensor


def _draw_phases(shape: Shape, rng: CounterRng, fields: int) -> Phases:
    half = -(-shape.width // 2)
    return Phases(rng.coarse_uniforms("phases", fields, shape.height, half).mul_(2 * math.pi))


def draw_three(shape: Shape, params: Params, rng: CounterRng) -> Phases:
    """For each of three channels."""
    return _draw_phases(shape, rng, 3)


def _draw_one(shape: Shape, params: Params, rng: CounterRng) -> Phases:
    return _draw_phases(shape, rng, 1)


def square_frequencies(images: Tensor) -> Tensor:
    """The square of every frequency in waves per shorter side, (H, W), frequency 0 in the middle."""
    height, width = images.shape[-2:]
    axes = [torch.arange(n, dtype=torch.float64, device=images.device).sub_(n // 2) for n in (height, width)]
    down, across = (axis * (min(height, width) / n) for axis, n in zip(axes, (height, width), strict=True))
    return (down * down)[:, None] + across * across


def shaped_noise(draw: Phases, weight: Tensor) -> Tensor:
    """Noise with a spectrum of these weights (H, W) and phases, of standard deviation 1, (B, n, H, W).

    The right half has the phases of the left one, turned by 180 degrees. That does not make the result real, and its
    imaginary part is dropped, as in the reference. So half of a spectrum makes it, of the means of waves and the
    conjugates of their opposites. The mean is not removed.
    """
    height, width = weight.shape
    left = draw.phases.to(torch.float64)
    kernels = compiled("spectra") if left.device.type == "cpu" else None
    back = partial(torch.fft.irfft2, s=(height, width))
    if kernels is not None:
        half = torch.empty((*left.shape[:3], width // 2 + 1), dtype=torch.complex128, device="cpu")
        shared_out(kernels.spectra, [left.cos(), left.sin(), torch.view_as_real(half)], weight.numpy())
        waves = transformed(half, back)
        noise = torch.empty(waves.shape, dtype=torch.float64, device="cpu")
        shared_out(kernels.standardised, [waves, noise])
        return noise
    left = torch.complex(left.cos(), left.sin())
    spectrum = torch.cat([left, left[..., : width // 2].flip(-2, -1)], dim=-1).mul_(weight)
    spectrum = spectrum.roll((-(height // 2), -(width // 2)), (-2, -1))
    opposite = spectrum.flip(-2, -1).roll((1, 1), (-2, -1)).conj()
    waves = transformed((spectrum + opposite)[..., : width // 2 + 1] * 0.5, back)
    return waves / waves.std((-2, -1), keepdim=True, correction=0)


def add_shaped_noise(images: Tensor, params: Params, draw: Phases, weight: Tensor) -> Tensor:
    """Add noise with such a spectrum, times `intensity`, to each of three channels."""
    intensity = float64_per_image(params, "intensity", images)
    return with_noise(images, torch.ones_like(intensity), shaped_noise(draw, weight), intensity)


def _brownish(images: Tensor, params: Params, draw: Phases) -> Tensor:
    return add_shaped_noise(images, params, draw, square_frequencies(images).add_(1).reciprocal_())


def _blue_sample(images: Tensor, params: Params, draw: Phases) -> Tensor:
    noise = shaped_noise(draw, square_frequencies(images).sqrt_())
    return images * (noise > float64_per_image(params, "threshold", images))


brownish_noise = unit(
    name="cbar:brownish_noise",
    description="Adds smooth coloured noise, whose strength falls with the square of the frequency.",
    table=by_magnitude(imagenet=(1, 2, 3, 4, 5), cifar=(2.5, 4, 5.5, 6.5, 7), intensity=(0, lambda m: 6.4 * m)),
    draw=draw_three,
    apply=_brownish,
    uint8_io=True,
)

blue_noise_sample = unit(
    name="cbar:blue_noise_sample",
    description="Blackens pixels that keep away from each other: those where blue noise is low.",
    table=by_magnitude(
        imagenet=(0.8, 1.6, 2.4, 4, 5.6),
        cifar=(0.7, 1.4, 2.1, 3.5, 4.2),
        threshold=(_NOWHERE, lambda m: 0.3 * m - 2.5),
    ),
    draw=_draw_one,
    apply=_blue_sample,
    uint8_io=True,
)
