"""ImageNet-C's noises: Gaussian, shot (Poisson), impulse and speckle."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image
from blemish.corruptions.severity import Params, imagenet_c_table
from blemish.ops.poisson import poisson_quantile

__all__ = ["gaussian_noise", "impulse_noise", "shot_noise", "speckle_noise"]


# A power of two, so that scaling by it is exact.
_STEEP = 2.0**60


class Normals(NamedTuple):
    """A standard normal value per image value, (B, C, H, W)."""

    field: Tensor


class Ranks(NamedTuple):
    """A uniform value in (0, 1) per image value, (B, C, H, W)."""

    field: Tensor


def _draw_normals(shape: Shape, params: Params, words: CounterRng) -> Normals:
    return Normals(words.normals("field", *shape))


def _draw_ranks(shape: Shape, params: Params, words: CounterRng) -> Ranks:
    return Ranks(words.coarse_uniforms("field", *shape))


def _gaussian(images: Tensor, params: Params, draw: Normals) -> Tensor:
    return images.addcmul_(draw.field, per_image(params["sigma"], images))


def _speckle(images: Tensor, params: Params, draw: Normals) -> Tensor:
    return images.addcmul_(images * draw.field, per_image(params["sigma"], images))


def _shot(images: Tensor, params: Params, draw: Normals) -> Tensor:
    """The count is the Poisson quantile at the rank of a normal, so that a draw serves every brightness."""
    photons = per_image(params["photons"], images)
    return poisson_quantile(draw.field, images * photons, limit=float(params["photons"].max())).div_(photons)


def _impulse(images: Tensor, params: Params, draw: Ranks) -> Tensor:
    """Ranks below `amount` are hit, the lower half by 1 and the upper by 0: a stronger impulse hits a superset."""
    amount = per_image(params["amount"], images) * _STEEP
    # Steep ramps, cut to 0 and 1, are twice as fast as comparisons and their conversion.
    kept = torch.add(-amount, draw.field, alpha=_STEEP).clamp_(0, 1)
    white = torch.add(amount / 2, draw.field, alpha=-_STEEP).clamp_(0, 1)
    return images.mul_(kept).add_(white)


gaussian_noise = Corruption(
    name="gaussian_noise",
    family="noise",
    description="Adds normal noise to every value, like a sensor in low light.",
    table=imagenet_c_table("gaussian_noise", [0]),
    draw=_draw_normals,
    apply=_gaussian,
)

shot_noise = Corruption(
    name="shot_noise",
    family="noise",
    description="Replaces every value by a Poisson count of few photons.",
    table=imagenet_c_table("shot_noise", [torch.inf], reciprocal=["photons"]),
    draw=_draw_normals,
    apply=_shot,
)

impulse_noise = Corruption(
    name="impulse_noise",
    family="noise",
    description="Sets random values to black or white: salt and pepper in each channel.",
    table=imagenet_c_table("impulse_noise", [0]),
    draw=_draw_ranks,
    apply=_impulse,
)

speckle_noise = Corruption(
    name="speckle_noise",
    family="noise",
    description="Adds normal noise in proportion to each value.",
    table=imagenet_c_table("speckle_noise", [0]),
    draw=_draw_normals,
    apply=_speckle,
)
