"""A user's own corruption, in a module that other processes can import."""

from __future__ import annotations

import torch
from torch import Tensor

import blemish
from blemish.corruptions.base import per_image


def shade(images: Tensor, params: blemish.corruptions.severity.Params, draw: Tensor) -> Tensor:
    """Darken the image from a random side."""
    ramp = torch.linspace(0, 1, images.shape[-1], device=images.device).view(1, 1, 1, -1)
    return images * (1 - per_image(params["depth"], images) * (ramp - draw).abs())


def draw_side(shape: blemish.Shape, params: blemish.corruptions.severity.Params, rng: blemish.CounterRng) -> Tensor:
    """Where the light comes from."""
    return rng.uniforms("side", 1, 1, 1)


shaded = blemish.Corruption(
    "mine:shaded",
    "mine",
    "Darker away from a random column.",
    blemish.SeverityTable(("depth",), {"any": ((0.0,), (0.2,), (0.4,), (0.6,), (0.8,), (1.0,))}, {"any": 224}),
    apply=shade,
    draw=draw_side,
)
