"""Draws that corruptions of several catalogues share, and the noise that is made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng, normal_table
from blemish.core.types import Shape
from blemish.corruptions.base import AtOnce, Numbers, no_draw, per_image, quantise
from blemish.corruptions.severity import Params
from blemish.ops.levels import unit_range

_LEVELS = 256


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


@dataclass(frozen=True)
class _ByLevel:
    """An object rather than a closure, so that it can be compared and sent to workers."""

    apply: Callable[[Tensor, Params, Any], Tensor]
    draw: Callable[[Shape, Params, CounterRng], Any]
    uint8_io: bool

    def __call__(self, kernels: Any, levels: Any, out: Any, params: Numbers, rng: CounterRng) -> None:
        known = {name: torch.from_numpy(values) for name, values in params.items()}
        draw = self.draw(Shape(*levels.shape[1:]), known, rng)
        ramp = torch.arange(_LEVELS, dtype=torch.uint8, device=rng.device).view(1, 1, 16, 16)
        ramp = ramp.expand(*levels.shape[:2], -1, -1).contiguous()
        made = self.apply(ramp if self.uint8_io else unit_range(ramp), known, draw)
        kernels.looked_up(levels, out, made if self.uint8_io else quantise(made))


def _larger(params: Numbers, height: int, width: int) -> bool:
    return height * width > _LEVELS


def by_level(
    apply: Callable[[Tensor, Params, Any], Tensor],
    draw: Callable[[Shape, Params, CounterRng], Any] = no_draw,
    *,
    uint8_io: bool = False,
) -> AtOnce:
    """For results that depend on nothing but a value's level, its channel and its image.

    Then a GPU changes the 256 levels, and looks up those of the images.
    """
    return AtOnce("lookup", _ByLevel(apply, draw, uint8_io), _larger)


def make_noise(
    kernels: Any, levels: Any, out: Any, params: Numbers, rng: CounterRng, *, relative: bool = False
) -> None:
    """What `draw_normals` and `add_noise` give, at once; where ``relative``, noise in proportion to each value."""
    settings = (rng.keys("field"), normal_table(), params["sigma"], relative)
    kernels.add_normal(levels.reshape(len(levels), -1), out.reshape(len(out), -1), *settings)
