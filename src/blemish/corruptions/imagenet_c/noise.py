"""ImageNet-C's noises: Gaussian, shot (Poisson), impulse and speckle."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.rng import CounterRng, normal_table
from blemish.corruptions.base import AtOnce, Corruption, Numbers, per_image
from blemish.corruptions.draws import Field, add_noise, draw_normals, draw_uniforms, make_noise
from blemish.corruptions.imagenet_c.published import SOURCE
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.distinct import distinct
from blemish.ops.levels import Levels, unit_range
from blemish.ops.poisson import POISSON_SWITCH, normal_tails, poisson_quantile

# A power of two, so that scaling by it is exact.
_STEEP = 2.0**60


def _speckle(images: Tensor, params: Params, draw: Field) -> Tensor:
    return images.addcmul_(images * draw.field, per_image(params["sigma"], images))


def _shot(images: Tensor, params: Params, draw: Field) -> Tensor:
    """The count is the Poisson quantile at the rank of a normal, so that a draw serves every brightness."""
    photons = per_image(params["photons"], images)
    return poisson_quantile(draw.field, images * photons, limit=float(params["photons"].max())).div_(photons)


def _impulse(images: Tensor, params: Params, draw: Field) -> Tensor:
    """Ranks below `amount` are hit, the lower half by 1 and the upper by 0: a stronger impulse hits a superset."""
    amount = per_image(params["amount"], images) * _STEEP
    # Steep ramps, cut to 0 and 1, are twice as fast as comparisons and their conversion.
    kept = torch.add(-amount, draw.field, alpha=_STEEP).clamp_(0, 1)
    white = torch.add(amount / 2, draw.field, alpha=-_STEEP).clamp_(0, 1)
    return images.mul_(kept).add_(white)


def _make_shot(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    known, kinds = distinct(params["photons"].tolist())
    growth = np.array([_growth(photons) for photons in known])
    settings = (normal_table(), normal_tails(), growth, kinds, params["photons"], POISSON_SWITCH)
    kernels.poisson(levels.reshape(len(levels), -1), out.reshape(len(out), -1), rng.keys("field"), *settings)


@lru_cache(maxsize=256)
def _growth(photons: float) -> NDArray[np.float32]:
    """The exponential of the mean count at each of the 256 levels."""
    means = unit_range(torch.arange(256, device="cpu")) * torch.tensor(photons, dtype=torch.float32, device="cpu")
    growth: NDArray[np.float32] = means.exp().numpy()
    return growth


def _make_impulse(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    known, which = distinct(params["amount"].tolist())
    bounds = zip(*map(_bounds, known), strict=True)
    white, hit = (np.array(ranks, dtype=np.int32)[which] for ranks in bounds)
    kernels.impulses(levels.reshape(len(levels), -1), out.reshape(len(out), -1), rng.keys("field"), white, hit)


@lru_cache(maxsize=256)
def _bounds(amount: float) -> tuple[int, int]:
    """The ranks (r + ½)/2¹⁶ that become white, and that are hit at all, are those with r below a whole number."""
    places = float(np.float32(amount)) * 2.0**16
    white, hit = (math.ceil(share - 0.5) for share in (places / 2, places))
    # A rank that equals the amount is hit as well, one that equals its half is not white.
    return white, hit + (hit + 0.5 == places)


gaussian_noise = Corruption(
    name="gaussian_noise",
    family="noise",
    description="Adds normal noise to every value, like a sensor in low light.",
    table=SeverityTable.by_preset(
        ("sigma",),
        imagenet=(0, 0.08, 0.12, 0.18, 0.26, 0.38),
        inception=(0, 0.09, 0.13, 0.19, 0.27, 0.4),
        imagenet64=(0, 0.04, 0.08, 0.12, 0.15, 0.18),
        cifar=(0, 0.04, 0.06, 0.08, 0.09, 0.1),
    ),
    draw=draw_normals,
    apply=add_noise,
    source=SOURCE,
    at_once=AtOnce("noise", make_noise, draws_little=True),
)

shot_noise = Corruption(
    name="shot_noise",
    family="noise",
    description="Replaces every value by a Poisson count of few photons.",
    table=SeverityTable.by_preset(
        ("photons",),
        imagenet=(torch.inf, 60, 25, 12, 5, 3),
        inception=(torch.inf, 50, 20, 10, 5, 3),
        imagenet64=(torch.inf, 250, 100, 50, 30, 15),
        cifar=(torch.inf, 500, 250, 100, 75, 50),
        reciprocal=("photons",),
    ),
    draw=draw_normals,
    apply=_shot,
    source=SOURCE,
    at_once=AtOnce("noise", _make_shot, draws_little=True),
)

impulse_noise = Corruption(
    name="impulse_noise",
    family="noise",
    description="Sets random values to black or white: salt and pepper in each channel.",
    table=SeverityTable.by_preset(
        ("amount",),
        imagenet=(0, 0.03, 0.06, 0.09, 0.17, 0.27),
        inception=(0, 0.04, 0.07, 0.1, 0.18, 0.28),
        imagenet64=(0, 0.01, 0.02, 0.05, 0.08, 0.14),
        cifar=(0, 0.01, 0.02, 0.03, 0.05, 0.07),
    ),
    draw=draw_uniforms,
    apply=_impulse,
    source=SOURCE,
    at_once=AtOnce("noise", _make_impulse, draws_little=True),
)

speckle_noise = Corruption(
    name="speckle_noise",
    family="noise",
    description="Adds normal noise in proportion to each value.",
    table=SeverityTable.by_preset(
        ("sigma",),
        imagenet=(0, 0.15, 0.2, 0.35, 0.45, 0.6),
        inception=(0, 0.16, 0.21, 0.36, 0.46, 0.61),
        imagenet64=(0, 0.15, 0.2, 0.25, 0.3, 0.35),
        cifar=(0, 0.06, 0.1, 0.12, 0.16, 0.2),
    ),
    draw=draw_normals,
    apply=_speckle,
    source=SOURCE,
    at_once=AtOnce("noise", partial(make_noise, relative=True), draws_little=True),
)
