"""The 23 corruptions from which ImageNet-NOC was selected, in the order of their publication."""

from __future__ import annotations

from blemish.corruptions.base import Corruption
from blemish.corruptions.noc import geometry, light, shapes, texture

__all__ = ["NOC"]

NOC: tuple[Corruption, ...] = (
    texture.quantization,
    texture.gaussian_noise,
    texture.salt_pepper,
    texture.blur,
    texture.thumbnail_resize,
    texture.pixelate,
    shapes.artifacts,
    shapes.vertical_artifacts,
    shapes.rhombus,
    shapes.rain,
    shapes.circles,
    shapes.obstruction,
    shapes.border,
    geometry.translation,
    geometry.shear,
    geometry.elastic,
    geometry.rotation,
    light.backlight,
    light.brightness,
    light.contrast,
    light.color_distortion,
    light.gray_scale,
    light.hue,
)
