"""MedMNIST-C's corruptions that are ImageNet-C's with other settings: noise, blur, pixels and JPEG.

Every image is corrupted in colour, and a gray one is made gray again. That matters for noise alone, which is drawn for
each of three channels and then averaged by their weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, quantise
from blemish.corruptions.draws import Field
from blemish.corruptions.imagenet_c import blur, digital, noise
from blemish.corruptions.med.published import SOURCE, settings_of
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.colour import as_colour, back_to
from blemish.ops.levels import truncated, unit_range
from blemish.ops.transfer import to_device

Draw = Callable[[Shape, Params, CounterRng], Any]
Apply = Callable[[Tensor, Params, Any], Tensor]


def _draw_in_colour(draw: Draw, shape: Shape, params: Params, rng: CounterRng) -> Field:
    field: Field = draw(shape._replace(channels=3), params, rng)
    return field


def _in_colour(apply: Apply, levels: Tensor, params: Params, draw: Field) -> Tensor:
    colour = as_colour(levels).contiguous()
    return back_to(levels, quantise(apply(unit_range(colour), params, draw)))


def _noise(unit: Corruption, table: SeverityTable) -> Corruption:
    return replace(
        _settings(unit, table),
        draw=partial(_draw_in_colour, unit.draw),
        apply=partial(_in_colour, unit.apply),
        uint8_io=True,
    )


def _saturate(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """In double precision, as the reference works: a level that it misses by a rounding error is cut to the one below.

    Grays count as reds, of hue 0.
    """
    if levels.shape[1] == 1:
        return levels
    # By a tensor: a GPU multiplies by the reciprocal of a number, which rounds otherwise.
    values = levels / torch.full((1,), 255.0, dtype=torch.float64, device=levels.device)
    brightest, darkest = values.amax(1, keepdim=True), values.amin(1, keepdim=True)
    spread = brightest - darkest
    saturation = spread / torch.where(brightest > 0, brightest, 1)
    shift = to_device(params["shift"], levels.device).view(-1, 1, 1, 1)
    below = (brightest - values) / torch.where(spread > 0, spread, 1)
    below[:, 1:] += (spread == 0).to(torch.float64)
    out = brightest * (1 - (saturation + shift).clamp_(0, 1) * below)
    return truncated(out.mul_(255).clamp_(0, 255))


def _settings(unit: Corruption, table: SeverityTable) -> Corruption:
    """The same corruption with the settings of MedMNIST-C, and random streams of its own."""
    return replace(unit, name=f"med:{unit.name}", family="med", table=table, source=SOURCE, version=1)


# The published factors are those of ImageNet-C.
_ZOOMS = replace(
    blur.zoom_blur.table, rows={"dermamnist": blur.zoom_blur.table.rows["imagenet"]}, sizes={"dermamnist": 224}
)

SHARED: tuple[Corruption, ...] = (
    _settings(digital.pixelate, settings_of("pixelate", scale=("scale", 1))),
    _settings(digital.jpeg_compression, settings_of("jpeg_compression", quality=("quality", 85), rounded=("quality",))),
    _noise(noise.gaussian_noise, settings_of("gaussian_noise", sigma=("sigma", 0))),
    _noise(noise.speckle_noise, settings_of("speckle_noise", sigma=("sigma", 0))),
    _noise(noise.impulse_noise, settings_of("impulse_noise", amount=("amount", 0))),
    _noise(noise.shot_noise, settings_of("shot_noise", photons=("photons", torch.inf), reciprocal=("photons",))),
    _settings(blur.defocus_blur, settings_of("defocus_blur", radius=("radius", 0), alias_blur=("alias_blur", 0))),
    _settings(blur.motion_blur, settings_of("motion_blur", radius=("radius", 0), sigma=("sigma", 0))),
    _settings(blur.zoom_blur, _ZOOMS),
    replace(
        _settings(digital.saturate, settings_of("saturate", shift=("shift", 0))),
        description="Adds to the saturation of colours; grays turn red.",
        apply=_saturate,
        uint8_io=True,
        version=2,
    ),
)
