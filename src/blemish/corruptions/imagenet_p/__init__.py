"""ImageNet-P's perturbation sequences (Hendrycks and Dietterich, ICLR 2019): ten in the benchmark, five extra ones."""

from __future__ import annotations

from blemish.corruptions.by_name import ByName
from blemish.corruptions.imagenet_p import pixels, warps
from blemish.corruptions.imagenet_p.sequence import DIFFICULTIES, PerturbationSequence, Scene, Window, strides
from blemish.corruptions.imagenet_p.settings import Preset

__all__ = ["DIFFICULTIES", "PerturbationSequence", "Preset", "Scene", "Sequences", "Window", "sequences", "strides"]


class Sequences(ByName[PerturbationSequence]):
    """An immutable mapping from name to sequence."""

    kind = "sequence"


sequences = Sequences(
    pixels.gaussian_noise,
    pixels.shot_noise,
    pixels.motion_blur,
    warps.zoom_blur,
    pixels.snow,
    pixels.brightness,
    warps.translate,
    warps.rotate,
    warps.tilt,
    warps.scale,
    pixels.speckle_noise,
    pixels.gaussian_blur,
    pixels.spatter,
    warps.shear,
    pixels.saturate,
)
