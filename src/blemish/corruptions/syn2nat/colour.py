"""Syn2Nat's candidates that change colours, tones and values one by one, and those that filter or add noise.

Severity 5 is the published setting, whose ranges are drawn uniformly per image; lower severities shrink the ranges
linearly towards the identity unless a description says otherwise. Formulas are those of albumentations 0.5.2, which the
paper used, without its rounding of intermediate hues and saturations to 8 bits.

A gray image is an image without colour: what turns or strengthens colours leaves it alone, a shift per channel is one
shift, and toning keeps the luminance of the toned image.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image
from blemish.corruptions.draws import draw_pixel_uniforms
from blemish.corruptions.severity import Params, SeverityTable
from blemish.corruptions.syn2nat import HALF_LEVEL, SOURCE, span
from blemish.ops.colour import luminance
from blemish.ops.filters import pad
from blemish.ops.hsv import hue, hue_ramps, lightness, lightness_room, shift_hsv
from blemish.ops.hue import turn_hue
from blemish.ops.poisson import poisson_quantile
from blemish.ops.transfer import to_device

__all__ = ["COLOUR_CANDIDATES"]


class Ranks(NamedTuple):
    """Places in the ranges of up to three parameters, uniform in (0, 1): (B, 3, 1, 1)."""

    ranks: Tensor

    def signed(self, index: int) -> Tensor:
        """One of them as (B, 1, 1, 1) in (−1, 1)."""
        return self.ranks[:, index : index + 1] * 2 - 1

    def within(self, index: int, params: Params, name: str) -> Tensor:
        """One of them as a value between the parameters `name_low` and `name_high`."""
        rank = self.ranks[:, index : index + 1]
        return span(rank, per_image(params[f"{name}_low"], rank), per_image(params[f"{name}_high"], rank))


class Grain(NamedTuple):
    """Places in the ranges, and random values per pixel (B, n, H, W)."""

    at: Ranks
    field: Tensor


def _draw_ranks(shape: Shape, params: Params, words: CounterRng) -> Ranks:
    return Ranks(words.uniforms("ranks", 3, 1, 1))


def _brightness(images: Tensor, params: Params, draw: Ranks) -> Tensor:
    return images.add_(draw.signed(0) * per_image(params["limit"], images))


def _contrast(images: Tensor, params: Params, draw: Ranks) -> Tensor:
    return images.mul_(draw.signed(0) * per_image(params["limit"], images) + 1)


def _gamma(images: Tensor, params: Params, draw: Ranks) -> Tensor:
    return images.pow_(draw.within(0, params, "gamma"))


def _rgb_shift(images: Tensor, params: Params, draw: Ranks) -> Tensor:
    shifts = draw.ranks[:, : images.shape[1]] * 2 - 1
    return images.add_(shifts * (per_image(params["limit"], images) / 255))


def _shift_hsv(images: Tensor, params: Params, draw: Ranks) -> Tensor:
    """The published limits count hue in 2° and the rest in levels."""
    turn = draw.signed(0) * per_image(params["hue_limit"], images) / 30
    saturation = draw.signed(1) * per_image(params["saturation_limit"], images) / 255
    return shift_hsv(images, turn, saturation, draw.signed(2) * per_image(params["value_limit"], images) / 255)


class Jitter(NamedTuple):
    """Four strengths (B, 4) in (−1, 1) and the order (B, 4) in which they act: the numbers 0 … 3; on the CPU.

    0 is brightness, 1 contrast, 2 saturation and 3 hue.
    """

    strength: Tensor
    order: Tensor


def _draw_jitter(shape: Shape, params: Params, words: CounterRng) -> Jitter:
    words = words.on_cpu()
    return Jitter(words.uniforms("strength", 4).to(torch.float64).mul(2).sub(1), words.permutations("order", 4))


def _jitter(images: Tensor, params: Params, draw: Jitter) -> Tensor:
    strength = draw.strength * params["limit"][:, None]
    for step in draw.order.unbind(1):
        images = _blended(images, 1 + strength.gather(1, step[:, None])[:, 0], step)
        turned = (step == 3).nonzero().flatten()
        if images.shape[1] == 3 and len(turned):
            rows = to_device(turned, images.device)
            some = images.index_select(0, rows)
            images.index_copy_(0, rows, turn_hue(some, per_image(strength[turned, 3], images)))
    return images


def _blended(images: Tensor, factor: Tensor, step: Tensor) -> Tensor:
    """Move away from black, the mean gray or each pixel's own gray, as `step` says; hue's turn moves nothing."""
    factor = per_image(torch.where(step == 3, 1.0, factor), images)
    gray = luminance(images)
    # Rows first: a sum over a whole image may be split between threads.
    mean = gray.mean(3, keepdim=True).mean(2, keepdim=True)
    anchor = gray.mul_(per_image((step == 2).to(torch.float64), images))
    anchor = anchor.add_(mean * per_image((step == 1).to(torch.float64), images)).mul_(1 - factor)
    return images.mul_(factor).add_(anchor).clamp_(0, 1)


def _emboss(images: Tensor, params: Params, draw: Ranks) -> Tensor:
    """Differences along the main diagonal, and in rows and columns by `strength`."""
    strength = draw.within(0, params, "strength")
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
    around = pad(images, 1, 1, 1, 1, "reflect101")
    rows = around[..., :-2] + around[..., 1:-1] + around[..., 2:]
    block = rows[..., :-2, :] + rows[..., 1:-1, :] + rows[..., 2:, :]
    gain = 1 + alpha * (8 + draw.within(1, params, "lightness"))
    return images.mul_(gain).sub_(block.mul_(alpha)).add_(HALF_LEVEL)


def _draw_normals(shape: Shape, params: Params, words: CounterRng) -> Grain:
    return Grain(_draw_ranks(shape, params, words), words.normals("field", *shape))


def _gauss_noise(images: Tensor, params: Params, draw: Grain) -> Tensor:
    """The variance is uniform, between the squares of the parameters."""
    low, high = (per_image(params[name].square(), images) for name in ("sigma_low", "sigma_high"))
    return images.addcmul_(draw.field, span(draw.at.ranks[:, :1], low, high).sqrt_().div_(255))


def _draw_multipliers(shape: Shape, params: Params, words: CounterRng) -> Grain:
    (field,) = draw_pixel_uniforms(shape, params, words)
    return Grain(_draw_ranks(shape, params, words), field.mul_(2).sub_(1))


def _multiplicative_noise(images: Tensor, params: Params, draw: Grain) -> Tensor:
    return images.mul_(draw.field * per_image(params["limit"], images) + 1)


def _draw_iso(shape: Shape, params: Params, words: CounterRng) -> Grain:
    return Grain(_draw_ranks(shape, params, words), words.normals("field", 2, shape.height, shape.width))


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


def _invert(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    return 255 - levels


def _posterize(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    step = per_image(2 ** (8 - params["bits"]), levels)
    return (levels / step).floor_().mul_(step).to(torch.uint8)


def _solarize(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    return torch.where(levels >= per_image(params["threshold"], levels), 255 - levels, levels)


# Microsoft's sepia tone in 1/1024, to which the reference's arithmetic rounds it: a row per new channel.
_SEPIA = ((402, 787, 194), (357, 702, 172), (279, 547, 134))


def _sepia(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    weight = per_image(params["weight"], images)
    red, green, blue = images.expand(-1, 3, -1, -1).unsqueeze(2).unbind(1)
    toned = torch.cat([red * r + green * g + blue * b for r, g, b in _SEPIA], dim=1)
    toned = toned.mul_(1 / 1024).clamp_(max=1)
    toned = toned if images.shape[1] == 3 else luminance(toned)
    return images.mul_(1 - weight).add_(toned.mul_(weight)).add_(HALF_LEVEL)


COLOUR_CANDIDATES: tuple[Corruption, ...] = (
    Corruption(
        name="syn2nat:color_jitter",
        family="syn2nat",
        description=(
            "Scales brightness, contrast and saturation by up to ±70 % and turns the hue by up to 0.7 of a circle, in any "
            "order; gray images keep to brightness and contrast."
        ),
        table=SeverityTable.linear(limit=(0, 0.7)),
        draw=_draw_jitter,
        apply=_jitter,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:emboss",
        family="syn2nat",
        description="Adds relief lit from one corner, a 3×3 filter at every image size; lower severities blend it with the image.",
        table=SeverityTable.linear(alpha=(0, 1), strength_low=(0.2, 0.2), strength_high=(0.7, 0.7)),
        draw=_draw_ranks,
        apply=_emboss,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:gauss_noise",
        family="syn2nat",
        description="Adds normal noise of variance 500 to 1000 in squared levels; its standard deviation grows with severity.",
        table=SeverityTable.linear(sigma_low=(0, 500**0.5), sigma_high=(0, 1000**0.5)),
        draw=_draw_normals,
        apply=_gauss_noise,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:hue_saturation_value",
        family="syn2nat",
        description="Shifts hue by up to ±200°, saturation by ±150 and value by ±100 levels; gray images have only a value.",
        table=SeverityTable.linear(hue_limit=(0, 100), saturation_limit=(0, 150), value_limit=(0, 100)),
        draw=_draw_ranks,
        apply=_shift_hsv,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:invert",
        family="syn2nat",
        description="The negative; severity 5 only, because a blend with the image would lose it halfway.",
        table=SeverityTable.linear(weight=(0, 1)),
        apply=_invert,
        severities=(5,),
        source=SOURCE,
        only_severity=5,
        uint8_io=True,
    ),
    Corruption(
        name="syn2nat:iso_noise",
        family="syn2nat",
        description="Sensor noise at high ISO: photons over dark parts and random hues; gray images get the photons only.",
        table=SeverityTable.linear(
            colour_shift_low=(0, 0.2), colour_shift_high=(0, 0.5), intensity_low=(0, 0.5), intensity_high=(0, 1)
        ),
        draw=_draw_iso,
        apply=_iso_noise,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:multiplicative_noise",
        family="syn2nat",
        description="Multiplies every pixel by 0.7 to 1.3, all its channels alike.",
        table=SeverityTable.linear(limit=(0, 0.3)),
        draw=_draw_multipliers,
        apply=_multiplicative_noise,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:posterize",
        family="syn2nat",
        description="Keeps the 2 highest of 8 bits; lower severities keep more, fractions of a bit included.",
        table=SeverityTable.linear(bits=(8, 2)),
        apply=_posterize,
        severities=(5,),
        source=SOURCE,
        uint8_io=True,
    ),
    Corruption(
        name="syn2nat:random_brightness",
        family="syn2nat",
        description="Adds up to ±90 % of white.",
        table=SeverityTable.linear(limit=(0, 0.9)),
        draw=_draw_ranks,
        apply=_brightness,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:random_contrast",
        family="syn2nat",
        description="Multiplies all values by −0.5 to 2.5; what falls below 0 is black.",
        table=SeverityTable.linear(limit=(0, 1.5)),
        draw=_draw_ranks,
        apply=_contrast,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:random_gamma",
        family="syn2nat",
        description="Darkens by a gamma of 3 to 10; lower severities lower both ends towards 1.",
        table=SeverityTable.linear(gamma_low=(1, 3), gamma_high=(1, 10)),
        draw=_draw_ranks,
        apply=_gamma,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:rgb_shift",
        family="syn2nat",
        description="Adds up to ±200 levels to each channel; a gray image gets one shift.",
        table=SeverityTable.linear(limit=(0, 200)),
        draw=_draw_ranks,
        apply=_rgb_shift,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:sharpen",
        family="syn2nat",
        description="Sharpens by a 3×3 filter, at every image size, which also darkens; lower severities blend it with the image.",
        table=SeverityTable.linear(
            alpha_low=(0, 0.3), alpha_high=(0, 0.6), lightness_low=(0.6, 0.6), lightness_high=(1, 1)
        ),
        draw=_draw_ranks,
        apply=_sharpen,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:solarize",
        family="syn2nat",
        description="Inverts values of 200 levels and more; lower severities raise the threshold towards 256.",
        table=SeverityTable.linear(threshold=(256, 200)),
        apply=_solarize,
        severities=(5,),
        source=SOURCE,
        uint8_io=True,
    ),
    Corruption(
        name="syn2nat:to_sepia",
        family="syn2nat",
        description="Sepia toning; lower severities blend it with the image. A gray image gets the toned image's luminance.",
        table=SeverityTable.linear(weight=(0, 1)),
        apply=_sepia,
        severities=(5,),
        source=SOURCE,
    ),
)
"""Fifteen of the forty."""
