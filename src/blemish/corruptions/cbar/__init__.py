"""The fifteen corruptions of ImageNet-C̄ and CIFAR-10-C̄: five in both, five in each alone. Names are the authors'."""

from __future__ import annotations

from blemish.corruptions.base import Corruption
from blemish.corruptions.cbar import blur, distortion, obscure, sparkles, spectral, waves
from blemish.corruptions.cbar.perlin import perlin_noise
from blemish.corruptions.moves import unmoved

__all__ = ["CBAR"]

CBAR: tuple[Corruption, ...] = unmoved(
    spectral.blue_noise_sample,
    spectral.brownish_noise,
    obscure.checkerboard_cutout,
    sparkles.inverse_sparkles,
    sparkles.sparkles,
    distortion.caustic_refraction,
    waves.cocentric_sine_waves,
    perlin_noise,
    waves.plasma_noise,
    waves.single_frequency_greyscale,
    blur.circular_motion_blur,
    obscure.lines,
    distortion.pinch_and_twirl,
    distortion.ripple,
    blur.transverse_chromatic_abberation,
)
