"""ImageNet-C's spatter: drops of water, or splashes of mud, on the lens."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image
from blemish.corruptions.severity import Params, SeverityTable, imagenet_c_table
from blemish.ops.edges import canny, depth, equalise, relief
from blemish.ops.filters import gaussian_blur
from blemish.ops.transfer import to_device

__all__ = ["Draw", "spatter"]

_WATER = (175, 238, 238)
_MUD = (63, 42, 20)
_LUMINANCE = (0.299, 0.587, 0.114)

# Mud thinner than this is left out.
_THIN = 0.8


class Draw(NamedTuple):
    """A standard normal value per pixel, (B, 1, H, W)."""

    field: Tensor


def _draw(shape: Shape, params: Params, words: CounterRng) -> Draw:
    return Draw(words.normals("field", 1, shape.height, shape.width))


def _apply(images: Tensor, params: Params, draw: Draw) -> Tensor:
    # Blurring the standard normal field first, and scaling after, keeps float32 errors out of the mean.
    field = gaussian_blur(draw.field, params["sigma"])
    return (_mud if bool(params["mud"][0]) else _water)(images, params, field)


def _water(images: Tensor, params: Params, field: Tensor) -> Tensor:
    """Adds pale turquoise in proportion to the layer's thickness times a relief seen around the drops' outlines."""
    colour = _colour(_WATER, images.shape[1], images.device) * per_image(params["strength"], images)
    layer = _layer(field, params)
    water = relief(equalise(depth(canny(layer)))).mul_(layer)
    # An image without a drop has a maximum of 0 and stays as it is.
    brightest = water.amax((2, 3), keepdim=True).clamp_(min=1)
    return images.addcmul_(water, colour / brightest)


def _layer(field: Tensor, params: Params) -> Tensor:
    """The liquid's thickness in 8-bit levels, 0 where it is below the threshold, as int16."""
    levels = torch.addcmul(per_image(255 * params["mean"], field), field, per_image(255 * params["std"], field))
    wet = torch.ge(levels, per_image(255 * params["threshold"], field), out=torch.empty_like(levels))
    # Beyond 255 the reference's 8-bit integers wrap around.
    return levels.mul_(wet).to(torch.int16).bitwise_and_(255)


def _mud(images: Tensor, params: Params, field: Tensor) -> Tensor:
    """Blends in brown where the layer exceeds the threshold, softened by a blur of standard deviation `strength`."""
    level = (params["threshold"] - params["mean"]) / params["std"]
    cover = torch.gt(field, per_image(level, field), out=torch.empty_like(field))
    cover = gaussian_blur(cover, params["strength"])
    cover = cover.mul_(torch.ge(cover, _THIN, out=torch.empty_like(cover)))
    return images.addcmul_(cover, _colour(_MUD, images.shape[1], images.device) - images)


@lru_cache(maxsize=16)
def _colour(rgb: tuple[int, int, int], channels: int, device: torch.device) -> Tensor:
    """A colour in [0, 1], (1, C, 1, 1): its luminance for grey images."""
    grey = sum(weight * value for weight, value in zip(_LUMINANCE, rgb, strict=True))
    colour = torch.tensor(rgb if channels == 3 else [grey], dtype=torch.float32) / 255
    return to_device(colour.view(1, -1, 1, 1), device)


def _table() -> SeverityTable:
    """Below severity 1 the drops of severity 1 fade. Above 3 ½ there is mud instead of water.

    `strength` interpolates like the rest, but means the water's opacity on one side and the blur of the mud's outlines,
    as a standard deviation in pixels, on the other.
    """
    table = imagenet_c_table("spatter", [0] * 6, rounded=["mud"])
    rows = {preset: ((*row[1][:4], 0.0, 0.0), *row[1:]) for preset, row in table.rows.items()}
    return replace(table, rows=rows)


spatter = Corruption(
    name="spatter",
    family="weather",
    description="Puts drops of water (severities 1 to 3) or splashes of mud (4 and 5) on the lens.",
    table=_table(),
    draw=_draw,
    apply=_apply,
    shared=("mud",),
)
