"""Draws that corruptions of several catalogues share, and the noise that is made of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from blemish.core.rng import CounterRng, normal_table
from blemish.core.types import Shape
from blemish.corruptions.base import Numbers, per_image
from blemish.corruptions.severity import Params

__all__ = [
    "Field",
    "add_noise",
    "draw_normals",
    "draw_pixel_normals",
    "draw_pixel_uniforms",
    "draw_uniforms",
    "make_noise",
    "signs",
]


class Field(NamedTuple):
    """Random values beside images: one per value (B, C, H, W), per pixel (B, 1, H, W) or per image (B, 1, 1, 1)."""

    field: Tensor


def draw_normals(shape: Shape, params: object, rng: CounterRng) -> Field:
    """A standard normal value per image value."""
    return Field(rng.normals("field", *shape))


def draw_pixel_normals(shape: Shape, params: object, rng: CounterRng) -> Field:
    """A standard normal value per pixel."""
    return Field(rng.normals("field", 1, shape.height, shape.width))


def draw_uniforms(shape: Shape, params: object, rng: CounterRng) -> Field:
    """A uniform value in (0, 1) per image value."""
    return Field(rng.coarse_uniforms("field", *shape))


def draw_pixel_uniforms(shape: Shape, params: object, rng: CounterRng) -> Field:
    """A uniform value in (0, 1) per pixel, for all its channels."""
    return Field(rng.coarse_uniforms("field", 1, shape.height, shape.width))


def signs(rng: CounterRng, name: str, *shape: int) -> Tensor:
    """Either −1 or +1, int64 (B, *shape)."""
    return rng.integers(name, *shape, high=2).mul_(2).sub_(1)


def add_noise(images: Tensor, params: Params, draw: Field) -> Tensor:
    """Add the field times `sigma`."""
    return images.addcmul_(draw.field, per_image(params["sigma"], images))


def make_noise(
    kernels: Any, levels: Any, out: Any, params: Numbers, rng: CounterRng, *, relative: bool = False
) -> None:
    """What `draw_normals` and `add_noise` give, at once; where ``relative``, noise in proportion to each value."""
    settings = (rng.keys("field"), normal_table(), params["sigma"], relative)
    kernels.add_normal(levels.reshape(len(levels), -1), out.reshape(len(out), -1), *settings)
