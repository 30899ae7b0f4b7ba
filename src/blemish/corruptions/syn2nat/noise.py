"""Syn2Nat's candidates that filter images or add noise to them; see `colour` for their ranges."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import AtOnce, Corruption, Numbers, as_planes, per_image
from blemish.corruptions.draws import draw_pixel_uniforms, make_noise
from blemish.corruptions.moves import A_LITTLE
from blemish.corruptions.severity import Params, SeverityTable
from blemish.corruptions.syn2nat.published import HALF_LEVEL, Ranks, draw_ranks, span, unit
from blemish.ops.filters import pad
from blemish.ops.fused import fused
from blemish.ops.hsv import hue, hue_ramps, lightness, lightness_room
from blemish.ops.poisson import poisson_quantile


class Grain(NamedTuple):
    """Places in the ranges, and random values per pixel (B, n, H, W)."""

    at: Ranks
    field: Tensor


def _emboss(images: Tensor, params: Params, draw: Ranks) -> Tensor:
    """Differences along the main diagonal, and in rows and columns by `strength`."""
    strength = draw.within(0, params, "strength")
    kernels = fused("stencils", images.device)
    if kernels is not None:
        embossed: Tensor = kernels.embossed(images, strength, per_image(params["alpha"], images))
        return embossed.add_(HALF_LEVEL)
    around = pad(images, 1, 1, 1, 1, "reflect101")
    corners = around[..., 2:, 2:] - around[..., :-2, :-2]
    sides = around[..., 2:, 1:-1] - around[..., :-2, 1:-1]
    sides += around[..., 1:-1, 2:]
    sides -= around[..., 1:-1, :-2]
    slope = corners.mul_(1 + strength).add_(sides.mul_(strength))
    return images.addcmul_(slope, per_image(params["alpha"], images)).add_(HALF_LEVEL)


def _sharpen(images: Tensor, params: Params, draw: Ranks) -> Tensor:
    """Eight times the pixel less its neighbours, and `lightness` times the pixel, over the image by `alpha`."""
    alpha = draw.within(0, params, "alpha")
    gain = 1 + alpha * (8 + draw.within(1, params, "lightness"))
    kernels = fused("stencils", images.device)
    if kernels is not None:
        sharpened: Tensor = kernels.sharpened(images, alpha, gain)
        return sharpened.add_(HALF_LEVEL)
    around = pad(images, 1, 1, 1, 1, "reflect101")
    rows = around[..., :-2] + around[..., 1:-1] + around[..., 2:]
    block = rows[..., :-2, :] + rows[..., 1:-1, :] + rows[..., 2:, :]
    return images.mul_(gain).sub_(block.mul_(alpha)).add_(HALF_LEVEL)


def _draw_normals(shape: Shape, params: Params, rng: CounterRng) -> Grain:
    return Grain(draw_ranks(shape, params, rng), rng.normals("field", *shape))


def _gauss_noise(images: Tensor, params: Params, draw: Grain) -> Tensor:
    """The variance is uniform, between the squares of the parameters."""
    low, high = (per_image(params[name].square(), images) for name in ("sigma_low", "sigma_high"))
    return images.addcmul_(draw.field, span(draw.at.ranks[:, :1], low, high).sqrt_().div_(255))


def _make_gauss(kernels: Any, levels: Any, out: Any, params: Numbers, rng: CounterRng) -> None:
    ranks = draw_ranks(Shape(*levels.shape[1:]), {}, rng.on_cpu()).ranks[:, 0, 0, 0]
    low, high = (torch.from_numpy(params[name]).square().to(torch.float32) for name in ("sigma_low", "sigma_high"))
    sigma = span(ranks, low, high).sqrt_().div_(255)
    make_noise(kernels, levels, out, {"sigma": sigma.numpy()}, rng)


def _make_multiplicative(kernels: Any, levels: Any, out: Any, params: Numbers, rng: CounterRng) -> None:
    kernels.multiply_uniform(as_planes(levels), as_planes(out), rng.keys("field"), params["limit"])


def _draw_multipliers(shape: Shape, params: Params, rng: CounterRng) -> Grain:
    (field,) = draw_pixel_uniforms(shape, params, rng)
    return Grain(draw_ranks(shape, params, rng), field.mul_(2).sub_(1))


def _multiplicative_noise(images: Tensor, params: Params, draw: Grain) -> Tensor:
    return images.mul_(draw.field * per_image(params["limit"], images) + 1)


def _draw_iso(shape: Shape, params: Params, rng: CounterRng) -> Grain:
    return Grain(draw_ranks(shape, params, rng), rng.normals("field", 2, shape.height, shape.width))


def _iso_noise(images: Tensor, params: Params, draw: Grain) -> Tensor:
    """Photons lighten what is dark, as many as the image has contrast, and hues are spread."""
    intensity = draw.at.within(1, params, "intensity")
    light = lightness(images)
    mean = light.mean(3, keepdim=True).mean(2, keepdim=True)
    contrast = (light - mean).square_().mean(3, keepdim=True).mean(2, keepdim=True).sqrt_()
    photons = (contrast * intensity * 255).expand_as(light)
    # No image of values in [0, 1] has a standard deviation above a half.
    counts = poisson_quantile(draw.field[:, :1], photons, limit=255 / 2)
    lifted = counts.mul_(1 / 255).mul_(1 - light).add_(light)
    if images.shape[1] == 1:
        return lifted
    turn = draw.field[:, 1:] * (draw.at.within(0, params, "colour_shift") * intensity * 6)
    room = lightness_room(light)
    saturation = (images.amax(1, keepdim=True) - images.amin(1, keepdim=True)).div_(room.masked_fill_(room <= 0, 1))
    spread = saturation.mul_(lightness_room(lifted))
    return hue_ramps(hue(images).add_(turn).remainder_(6)).sub_(0.5).mul_(spread).add_(lifted)


NOISES: tuple[Corruption, ...] = (
    unit(
        name="syn2nat:emboss",
        description="Adds relief lit from one corner, a 3×3 filter at every image size; "
        "lower severities blend it with the image.",
        table=SeverityTable.linear(alpha=(0, 1), strength_low=(0.2, 0.2), strength_high=(0.7, 0.7)),
        draw=draw_ranks,
        apply=_emboss,
        moves=A_LITTLE,
    ),
    unit(
        name="syn2nat:gauss_noise",
        description="Adds normal noise of variance 500 to 1000 in squared levels; "
        "its standard deviation grows with severity.",
        table=SeverityTable.linear(sigma_low=(0, 500**0.5), sigma_high=(0, 1000**0.5)),
        draw=_draw_normals,
        apply=_gauss_noise,
        at_once=AtOnce("noise", _make_gauss),
    ),
    unit(
        name="syn2nat:iso_noise",
        description="Sensor noise at high ISO: photons over dark parts and random hues; "
        "gray images get the photons only.",
        table=SeverityTable.linear(
            colour_shift_low=(0, 0.2), colour_shift_high=(0, 0.5), intensity_low=(0, 0.5), intensity_high=(0, 1)
        ),
        draw=_draw_iso,
        apply=_iso_noise,
    ),
    unit(
        name="syn2nat:multiplicative_noise",
        description="Multiplies every pixel by 0.7 to 1.3, all its channels alike.",
        table=SeverityTable.linear(limit=(0, 0.3)),
        draw=_draw_multipliers,
        apply=_multiplicative_noise,
        at_once=AtOnce("noise", _make_multiplicative),
    ),
    unit(
        name="syn2nat:sharpen",
        description="Sharpens by a 3×3 filter, at every image size, which also darkens; "
        "lower severities blend it with the image.",
        table=SeverityTable.linear(
            alpha_low=(0, 0.3), alpha_high=(0, 0.6), lightness_low=(0.6, 0.6), lightness_high=(1, 1)
        ),
        draw=draw_ranks,
        apply=_sharpen,
    ),
)
