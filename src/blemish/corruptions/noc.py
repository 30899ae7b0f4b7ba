"""The 23 corruptions from which ImageNet-NOC was selected, in the order of their publication."""

from __future__ import annotations

from blemish.corruptions import noc_geometry, noc_light, noc_shapes, noc_texture
from blemish.corruptions.base import Corruption

__all__ = ["NOC"]

NOC: tuple[Corruption, ...] = (
    noc_texture.quantization,
    noc_texture.gaussian_noise,
    noc_texture.salt_pepper,
    noc_texture.blur,
    noc_texture.thumbnail_resize,
    noc_texture.pixelate,
    noc_shapes.artifacts,
    noc_shapes.vertical_artifacts,
    noc_shapes.rhombus,
    noc_shapes.rain,
    noc_shapes.circles,
    noc_shapes.obstruction,
    noc_shapes.border,
    noc_geometry.translation,
    noc_geometry.shear,
    noc_geometry.elastic,
    noc_geometry.rotation,
    noc_light.backlight,
    noc_light.brightness,
    noc_light.contrast,
    noc_light.color_distortion,
    noc_light.gray_scale,
    noc_light.hue,
)
