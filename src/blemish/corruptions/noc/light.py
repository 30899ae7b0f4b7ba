"""ImageNet-NOC's light and colour: backlight, brightness, contrast, colour distortion, gray scale and hue."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image
from blemish.corruptions.draws import Field, by_level, signs
from blemish.corruptions.noc.published import FIGURE_6, unit
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.colour import LUMINANCE, luminance
from blemish.ops.fused import fused
from blemish.ops.hue import turn_hue

# The part of the image, from the top or from the left, that may lie on one side of the backlight's line.
_FIRST_SPLIT, _LAST_SPLIT = 0.3, 0.7


def _draw_sign(shape: Shape, params: Params, rng: CounterRng) -> Field:
    """+1 or −1 for each image."""
    return Field(signs(rng, "sign", 1, 1, 1).to(torch.float32))


def _brightness(images: Tensor, params: Params, draw: Field) -> Tensor:
    return images.add_(draw.field * per_image(params["shift"], images))


class Split(NamedTuple):
    """A straight line across the image: whether it is upright, and where, as a part of the side; (B, 1, 1, 1) each.

    `sign` is that of the light on the upper or left side of it.
    """

    upright: Tensor
    position: Tensor
    sign: Tensor


def _draw_split(shape: Shape, params: Params, rng: CounterRng) -> Split:
    position = rng.uniforms("place", 1, 1, 1).mul_(_LAST_SPLIT - _FIRST_SPLIT).add_(_FIRST_SPLIT)
    upright = rng.integers("upright", 1, 1, 1, high=2) == 1
    return Split(upright, position, *_draw_sign(shape, params, rng))


def _middles(count: int, device: torch.device) -> Tensor:
    """The middles of `count` pixels on a side of length 1."""
    return torch.arange(count, device=device, dtype=torch.float32).add(0.5).div_(count)


def _backlight(images: Tensor, params: Params, draw: Split) -> Tensor:
    height, width = images.shape[-2:]
    across, down = _middles(width, images.device), _middles(height, images.device)[:, None]
    first = torch.where(draw.upright, across, down) < draw.position
    shift = draw.sign * per_image(params["shift"], images)
    return images.add_(torch.where(first, shift, -shift))


def _contrast(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """All values approach one mean, over all channels."""
    kept = 1 - per_image(params["reduction"], images)
    mean = images.mean((2, 3), keepdim=True).mean(1, keepdim=True)
    return images.mul_(kept).add_(mean * (1 - kept))


class Channel(NamedTuple):
    """One channel of three, int64 (B, 1, 1, 1)."""

    number: Tensor


def _draw_channel(shape: Shape, params: Params, rng: CounterRng) -> Channel:
    return Channel(rng.integers("channel", 1, 1, 1, high=3))


def _color_distortion(images: Tensor, params: Params, draw: Channel) -> Tensor:
    """A grey image becomes what the luminance of its colour version would be."""
    shift = per_image(params["shift"], images)
    chosen = draw.number == torch.arange(3, device=images.device).view(1, 3, 1, 1)
    if images.shape[1] == 3:
        return images.add_(shift * chosen)
    chosen = chosen.to(torch.float32)
    share = sum(chosen[:, i : i + 1] * weight for i, weight in enumerate(LUMINANCE))
    return images.add_(torch.minimum(shift, 1 - images).mul_(share))


def _gray_scale(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    if images.shape[1] == 1:
        return images
    weight = per_image(params["weight"], images)
    kernels = fused("tones", images.device)
    if kernels is not None:
        faded: Tensor = kernels.faded(images, weight)
        return faded
    gray = luminance(images)
    return images.mul_(1 - weight).add_(gray.mul_(weight))


def _hue(images: Tensor, params: Params, draw: Field) -> Tensor:
    return turn_hue(images, draw.field * per_image(params["turns"], images))


LIGHT: tuple[Corruption, ...] = (
    unit(
        name="noc:backlight",
        description="Brightens one side of a straight line and darkens the other.",
        table=SeverityTable.between(shift=(0, 0.11, 0.44)),
        draw=_draw_split,
        apply=_backlight,
        source=FIGURE_6,
    ),
    unit(
        name="noc:brightness",
        description="Brightens or darkens every value by the same amount.",
        table=SeverityTable.between(shift=(0, 0.16, 0.51)),
        draw=_draw_sign,
        apply=_brightness,
        source=FIGURE_6,
        at_once=by_level(_brightness, _draw_sign),
    ),
    unit(
        name="noc:contrast",
        description="Pulls every value towards the mean of the image.",
        table=SeverityTable.between(reduction=(0, 0.33, 0.74)),
        apply=_contrast,
        source=FIGURE_6,
    ),
    unit(
        name="noc:color_distortion",
        description="Raises one of the red, green and blue channels.",
        table=SeverityTable.between(shift=(0, 0.09, 0.40)),
        draw=_draw_channel,
        apply=_color_distortion,
        source=FIGURE_6,
        at_once=by_level(_color_distortion, _draw_channel),
    ),
    unit(
        name="noc:gray_scale",
        description="Fades colours to gray.",
        table=SeverityTable.between(weight=(0, 0.49, 1)),
        apply=_gray_scale,
        source=FIGURE_6,
    ),
    unit(
        name="noc:hue",
        description="Turns all hues by the same angle, in one direction or the other.",
        table=SeverityTable.between(turns=(0, 0.05, 0.5)),
        draw=_draw_sign,
        apply=_hue,
        source=FIGURE_6,
    ),
)
