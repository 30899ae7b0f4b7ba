"""Too little light and too few levels: low light, ISO noise and colour quantisation of 3D Common Corruptions."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image
from blemish.corruptions.sensor.published import PUBLISHED
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.poisson import poisson_quantile


class Exposure(NamedTuple):
    """Two standard normal values per image value: the rank of a photon count, and the noise of reading it out."""

    rank: Tensor
    noise: Tensor


def _draw_exposure(shape: Shape, params: Params, rng: CounterRng) -> Exposure:
    return Exposure(rng.normals("photons", *shape), rng.normals("noise", *shape))


def _exposed(light: Tensor, params: Params, draw: Exposure) -> Tensor:
    """Photons are counted, cut at full, and read with noise."""
    photons = per_image(params["photons"], light)
    most = float(params["photons"].max())
    counts = poisson_quantile(draw.rank, light * photons, limit=most).div_(photons).clamp_(max=1)
    return counts.addcmul_(draw.noise, per_image(params["sigma"], light))


def _iso_noise(images: Tensor, params: Params, draw: Exposure) -> Tensor:
    return _exposed(images, params, draw)


def _low_light(images: Tensor, params: Params, draw: Exposure) -> Tensor:
    """The image, stretched to all of its range, squared and dimmed. An even one has no range and becomes black."""
    darkest, brightest = images.amin((1, 2, 3), keepdim=True), images.amax((1, 2, 3), keepdim=True)
    stretch = per_image(params["stretch"], images)
    room = 1 - stretch * (1 - (brightest - darkest))
    light = images.sub_(darkest * stretch).div_(room + (room <= 0))
    bend = per_image(params["bend"], images)
    return _exposed(light * (1 - bend + bend * light) * per_image(params["gain"], images), params, draw)


def _color_quant(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """The largest multiple of `step` that is not above a level."""
    step = per_image(params["step"], levels)
    return (levels / step).floor_().mul_(step).to(torch.uint8)


# Infinitely many photons at severity 0, where nothing is left to chance.
_MANY = torch.inf

low_light = Corruption(
    name="sensor:low_light",
    family="sensor",
    description="Darkens, shadows most of all, and adds the noise of a sensor that counts few photons.",
    table=SeverityTable.of(
        gain=(1, 0.6, 0.5, 0.4, 0.3, 0.2),
        stretch=(0, 1, 1, 1, 1, 1),
        bend=(0, 1, 1, 1, 1, 1),
        photons=(_MANY, 120, 120, 120, 120, 120),
        sigma=(0, 0.018, 0.018, 0.018, 0.018, 0.018),
        reciprocal=("photons",),
    ),
    draw=_draw_exposure,
    apply=_low_light,
    source=PUBLISHED,
)

iso_noise = Corruption(
    name="sensor:iso_noise",
    family="sensor",
    description="Counts few photons and amplifies them with normal noise, like a camera at high sensitivity.",
    table=SeverityTable.of(
        photons=(_MANY, 25, 25, 25, 25, 25),
        sigma=(0, 0.056, 0.084, 0.126, 0.182, 0.266),
        reciprocal=("photons",),
    ),
    draw=_draw_exposure,
    apply=_iso_noise,
    source=PUBLISHED,
)

color_quant = Corruption(
    name="sensor:color_quant",
    family="sensor",
    description="Keeps only the first 5, 4, 3, 2 or 1 bits of every value.",
    table=SeverityTable.of(step=(1, 8, 16, 32, 64, 128)),
    apply=_color_quant,
    uint8_io=True,
    source=PUBLISHED,
)
