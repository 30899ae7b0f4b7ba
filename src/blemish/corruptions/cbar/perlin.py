"""C̄'s Perlin noise: a bright haze with veins."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import side_scale
from blemish.corruptions.cbar.published import as_bytes, by_magnitude, float64_per_image, unit
from blemish.corruptions.severity import Params
from blemish.ops.perlin import TABLE, turbulence

_CELL = 32.0  # pixels of an image of the published side
_OCTAVES = 5
_STEPS = 512  # a gradient points from the middle of a square of so many steps to one of its points


class Gradients(NamedTuple):
    """Unit vectors (B, 256, 2), down and right, float64, and a permutation of their numbers (B, 256), int64."""

    directions: Tensor
    places: Tensor


def _draw_gradients(shape: Shape, params: Params, rng: CounterRng) -> Gradients:
    """The reference may also draw the middle itself, which has no direction, and then makes pixels that are no numbers.

    We leave it out.
    """
    middle = _STEPS * (_STEPS + 1) // 2
    number = rng.integers("gradients", TABLE, high=_STEPS * _STEPS - 1)
    number += number >= middle
    steps = torch.stack([number // _STEPS, number % _STEPS], dim=2).sub_(_STEPS // 2).to(torch.float64)
    length = steps.square().sum(2, keepdim=True).sqrt_()
    return Gradients(steps / length, rng.permutations("places", TABLE))


def _perlin(images: Tensor, params: Params, draw: Gradients) -> Tensor:
    height, width = images.shape[-2:]
    alpha = float64_per_image(params, "alpha", images)
    cell = _CELL * side_scale(height, width)
    haze = turbulence(draw.directions, draw.places, height, width, cell=cell, octaves=_OCTAVES)
    haze = haze.mul_(0.5).add_(0.5).clamp_(0, 1).mul_(255 * alpha)
    clear = images.to(torch.float32) * (1 - alpha).to(torch.float32)
    return as_bytes(haze + clear)


perlin_noise = unit(
    name="cbar:perlin_noise",
    description="Mixes in a bright haze with veins: Perlin's noise of five scales.",
    # Published for 224 pixels. For 32 the same steps of the range that was scanned there, which is the same.
    table=by_magnitude(
        imagenet=(4.6, 5.2, 5.8, 7.6, 8.8), cifar=(4.6, 5.2, 5.8, 7.6, 8.8), alpha=(0, lambda m: 0.05 * m)
    ),
    draw=_draw_gradients,
    apply=_perlin,
    uint8_io=True,
)
