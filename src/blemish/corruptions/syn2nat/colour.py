"""Syn2Nat's candidates that change colours, tones and values one by one.

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
from blemish.corruptions.draws import by_level
from blemish.corruptions.severity import Params, SeverityTable
from blemish.corruptions.syn2nat.published import HALF_LEVEL, Ranks, draw_ranks, unit
from blemish.ops.colour import luminance
from blemish.ops.fused import fused
from blemish.ops.hsv import shift_hsv
from blemish.ops.hue import turn_hue
from blemish.ops.transfer import to_device


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


def _draw_jitter(shape: Shape, params: Params, rng: CounterRng) -> Jitter:
    rng = rng.on_cpu()
    return Jitter(rng.uniforms("strength", 4).to(torch.float64).mul(2).sub(1), rng.permutations("order", 4))


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
    kernels = fused("tones", images.device) if images.shape[1] == 3 else None
    if kernels is not None:
        own, shared = (per_image((step == kind).to(torch.float64), images) for kind in (2, 1))
        moved: Tensor = kernels.moved_from_gray(images, factor, own, shared)
        return moved
    gray = luminance(images)
    # Rows first: a sum over a whole image may be split between threads.
    mean = gray.mean(3, keepdim=True).mean(2, keepdim=True)
    anchor = gray.mul_(per_image((step == 2).to(torch.float64), images))
    anchor = anchor.add_(mean * per_image((step == 1).to(torch.float64), images)).mul_(1 - factor)
    return images.mul_(factor).add_(anchor).clamp_(0, 1)


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
    kernels = fused("tones", images.device) if images.shape[1] == 3 else None
    if kernels is not None:
        matrix = to_device(torch.tensor(_SEPIA, dtype=torch.float32), images.device)
        mixed: Tensor = kernels.toned(images, weight, matrix)
        return mixed.add_(HALF_LEVEL)
    red, green, blue = images.expand(-1, 3, -1, -1).unsqueeze(2).unbind(1)
    toned = torch.cat([red * r + green * g + blue * b for r, g, b in _SEPIA], dim=1)
    toned = toned.mul_(1 / 1024).clamp_(max=1)
    toned = toned if images.shape[1] == 3 else luminance(toned)
    return images.mul_(1 - weight).add_(toned.mul_(weight)).add_(HALF_LEVEL)


COLOURS: tuple[Corruption, ...] = (
    unit(
        name="syn2nat:color_jitter",
        description="Scales brightness, contrast and saturation by up to ±70 % and turns the hue by up to 0.7 of a "
        "circle, in any order; gray images keep to brightness and contrast.",
        table=SeverityTable.linear(limit=(0, 0.7)),
        draw=_draw_jitter,
        apply=_jitter,
    ),
    unit(
        name="syn2nat:hue_saturation_value",
        description="Shifts hue by up to ±200°, saturation by ±150 and value by ±100 levels; "
        "gray images have only a value.",
        table=SeverityTable.linear(hue_limit=(0, 100), saturation_limit=(0, 150), value_limit=(0, 100)),
        draw=draw_ranks,
        apply=_shift_hsv,
    ),
    unit(
        name="syn2nat:invert",
        description="The negative; severity 5 only, because a blend with the image would lose it halfway.",
        table=SeverityTable.linear(weight=(0, 1)),
        apply=_invert,
        only_severity=5,
        uint8_io=True,
        at_once=by_level(_invert, uint8_io=True),
    ),
    unit(
        name="syn2nat:posterize",
        description="Keeps the 2 highest of 8 bits; lower severities keep more, fractions of a bit included.",
        table=SeverityTable.linear(bits=(8, 2)),
        apply=_posterize,
        uint8_io=True,
        at_once=by_level(_posterize, uint8_io=True),
    ),
    unit(
        name="syn2nat:random_brightness",
        description="Adds up to ±90 % of white.",
        table=SeverityTable.linear(limit=(0, 0.9)),
        draw=draw_ranks,
        apply=_brightness,
        at_once=by_level(_brightness, draw_ranks),
    ),
    unit(
        name="syn2nat:random_contrast",
        description="Multiplies all values by −0.5 to 2.5; what falls below 0 is black.",
        table=SeverityTable.linear(limit=(0, 1.5)),
        draw=draw_ranks,
        apply=_contrast,
        at_once=by_level(_contrast, draw_ranks),
    ),
    unit(
        name="syn2nat:random_gamma",
        description="Darkens by a gamma of 3 to 10; lower severities lower both ends towards 1.",
        table=SeverityTable.linear(gamma_low=(1, 3), gamma_high=(1, 10)),
        draw=draw_ranks,
        apply=_gamma,
        at_once=by_level(_gamma, draw_ranks),
    ),
    unit(
        name="syn2nat:rgb_shift",
        description="Adds up to ±200 levels to each channel; a gray image gets one shift.",
        table=SeverityTable.linear(limit=(0, 200)),
        draw=draw_ranks,
        apply=_rgb_shift,
        at_once=by_level(_rgb_shift, draw_ranks),
    ),
    unit(
        name="syn2nat:solarize",
        description="Inverts values of 200 levels and more; lower severities raise the threshold towards 256.",
        table=SeverityTable.linear(threshold=(256, 200)),
        apply=_solarize,
        uint8_io=True,
        at_once=by_level(_solarize, uint8_io=True),
    ),
    unit(
        name="syn2nat:to_sepia",
        description="Sepia toning; "
        "lower severities blend it with the image. A gray image gets the toned image's luminance.",
        table=SeverityTable.linear(weight=(0, 1)),
        apply=_sepia,
    ),
)
