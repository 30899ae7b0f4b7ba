"""The ImageNet-NOC corruptions by their short names, their published ranges, and plain images to try them on."""

from __future__ import annotations

import torch
from torch import Tensor

from blemish.corruptions.noc import NOC

UNITS = {unit.name.removeprefix("noc:"): unit for unit in NOC}

# "Severity Range" in Figures 5 and 6 of the paper, mild end first. Shear is printed as one number, 0.39; the bounds
# here are those of the authors' released settings, in degrees.
PUBLISHED = {
    "quantization": (9, 4),
    "gaussian_noise": (0.05, 0.18),
    "salt_pepper": (0.003, 0.032),
    "blur": (0.4, 0.95),
    "thumbnail_resize": (1.1, 3.25),
    "pixelate": (2, 4),
    "artifacts": (15, 170),
    "vertical_artifacts": (15, 180),
    "rhombus": (9, 76),
    "rain": (12, 120),
    "circles": (7, 50),
    "obstruction": (47, 125),
    "border": (9, 46),
    "translation": (15, 62),
    "shear": (12, 39),
    "elastic": (44, 110),
    "rotation": (7, 50),
    "backlight": (0.11, 0.44),
    "brightness": (0.16, 0.51),
    "contrast": (0.33, 0.74),
    "color_distortion": (0.09, 0.40),
    "gray_scale": (0.49, 1),
    "hue": (0.05, 0.5),
}


def flat(value: float, *, count: int = 1, channels: int = 3, height: int = 224, width: int = 224) -> Tensor:
    return torch.full((count, channels, height, width), round(255 * value), dtype=torch.uint8)


def one_pixel(y: int, x: int, *, count: int = 1, height: int = 224, width: int = 224) -> Tensor:
    """White on black."""
    images = flat(0, count=count, height=height, width=width)
    images[:, :, y, x] = 255
    return images
