"""The nineteen corruptions of ImageNet-C, fifteen in the benchmark and four extra ones, and our variant of frost."""

from __future__ import annotations

from blemish.corruptions.base import Corruption
from blemish.corruptions.imagenet_c import blur, digital, noise, weather
from blemish.corruptions.imagenet_c.spatter import spatter
from blemish.corruptions.moves import unmoved

__all__ = ["IMAGENET_C"]

IMAGENET_C: tuple[Corruption, ...] = unmoved(
    noise.gaussian_noise,
    noise.shot_noise,
    noise.impulse_noise,
    blur.defocus_blur,
    blur.glass_blur,
    blur.motion_blur,
    blur.zoom_blur,
    weather.snow,
    weather.frost,
    weather.fog,
    weather.brightness,
    digital.contrast,
    digital.elastic_transform,
    digital.pixelate,
    digital.jpeg_compression,
    noise.speckle_noise,
    blur.gaussian_blur,
    spatter,
    digital.saturate,
    weather.frost_drawn,
)
