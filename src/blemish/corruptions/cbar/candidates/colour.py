"""C̄'s candidates that change colours."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image
from blemish.corruptions.cbar.candidates.published import scanned, unit
from blemish.corruptions.cbar.published import by_magnitude, in_colour, uniform
from blemish.corruptions.draws import Field, signs
from blemish.corruptions.severity import Params
from blemish.ops.colour import luminance
from blemish.ops.hue import turn_hue

_LUMA = (0.2126, 0.7152, 0.0722)


def _mixed(images: Tensor, changed: Tensor, params: Params) -> Tensor:
    return torch.lerp(images, changed, per_image(params["amount"], images))


def _bleach_bypass(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """Dark colours are multiplied by their luma, bright ones screened with it; silver left on the film does so.

    The reference does not clip, so that some dark values become bright. We clip.
    """
    luma = luminance(images, _LUMA)
    bright = (luma - 0.45).mul_(10).clamp_(0, 1)
    screened = 1 - 2 * (1 - luma) * (1 - images)
    return _mixed(images, torch.lerp(2 * images * luma, screened, bright).clamp_(0, 1), params)


def _technicolor(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """Each channel is darkened where the others stand out, as by three strips of film. Grays do not change."""
    if images.shape[1] == 1:
        return images
    others = images.sum(1, keepdim=True) - images
    mattes = 1 - (images - others / 2)
    red, green, blue = mattes.unbind(1)
    changed = images * torch.stack([green * blue, red * blue, red * green], dim=1)
    return _mixed(images, changed, params)


class Palette(NamedTuple):
    """How smoothly five colours follow each other, (B, 1, 1, 1), and the colours, (B, 5, 3) in 0 … 1; float32."""

    smoothness: Tensor
    colours: Tensor


_COLOURS = 5


def _draw_palette(shape: Shape, params: Params, rng: CounterRng) -> Palette:
    smoothness = uniform(rng, "smoothness", 0.25, 0.75, 1, 1, 1).to(torch.float32)
    return Palette(smoothness, rng.integers("colours", _COLOURS, 3, high=255).to(torch.float32).div_(255))


def _pseudocolor(images: Tensor, params: Params, draw: Palette) -> Tensor:
    """Luma is shown by five colours, with ramps between them. In the reference the smooth ramps overflow; not here."""

    def painted(levels: Tensor) -> Tensor:
        shade = luminance(levels, _LUMA).clamp_(0, 1).mul_(_COLOURS - 1)
        lower = shade.floor().clamp_(max=_COLOURS - 2)
        step = shade - lower
        ramp = torch.lerp(step, step * step * (3 - 2 * step), draw.smoothness)
        index = lower.to(torch.int64).flatten(1)[:, :, None].expand(-1, -1, 3)
        first, second = (draw.colours.gather(1, index + i).transpose(1, 2).reshape(levels.shape) for i in (0, 1))
        return _mixed(levels, torch.lerp(first, second, ramp), params)

    return in_colour(images, painted)


def _draw_sign(shape: Shape, params: Params, rng: CounterRng) -> Field:
    """+1 or −1 for each image."""
    return Field(signs(rng, "sign", 1, 1, 1).to(torch.float32))


def _color_balance(images: Tensor, params: Params, draw: Field) -> Tensor:
    """Away from the luminance or towards it."""
    if images.shape[1] == 1:
        return images
    change = draw.field * per_image(params["amount"], images)
    return images + (images - luminance(images)) * change


def _hue_shift(images: Tensor, params: Params, draw: Field) -> Tensor:
    return turn_hue(images, draw.field * per_image(params["turns"], images))


# What Floyd and Steinberg give to the right, and below to the left, below and below to the right, of 16. The reference
# drops the step to the next row, so that all of it stays in the row.
_RIGHT, _LEFT, _HERE = 7 + 1, 3, 5


def _color_dither(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """Rounds to a few levels along each row, and passes the errors on to the neighbours in it."""
    steps = per_image(params["levels"] - 1, images)[..., 0]
    out = images.clone()
    carried = torch.zeros_like(images[..., 0])
    for column in range(images.shape[-1]):
        wanted = images[..., column] + carried
        nearest = (wanted * steps).round_().div_(steps)
        error = (wanted - nearest).div_(16)
        out[..., column] = nearest + error * _HERE
        if column:
            out[..., column - 1] += error * _LEFT
        carried = error * _RIGHT
    return out


COLOURS: tuple[Corruption, ...] = (
    unit(
        name="cbar:bleach_bypass",
        description="Raises contrast and takes colour away, like film whose silver was not bleached. Unverified.",
        table=by_magnitude(imagenet=scanned(0, 10), cifar=scanned(0, 10), amount=(0, lambda m: 0.1 * m)),
        apply=_bleach_bypass,
    ),
    unit(
        name="cbar:technicolor",
        description="Changes saturated colours as old film of three strips did. Unverified.",
        table=by_magnitude(imagenet=scanned(0, 10), cifar=scanned(0, 10), amount=(0, lambda m: 0.1 * m)),
        apply=_technicolor,
    ),
    unit(
        name="cbar:pseudocolor",
        description="Shows brightness by five random colours. Unverified.",
        table=by_magnitude(imagenet=scanned(1, 10), cifar=scanned(0, 7), amount=(0, lambda m: 0.05 * m)),
        draw=_draw_palette,
        apply=_pseudocolor,
    ),
    unit(
        name="cbar:color_balance",
        description="Makes colours stronger or weaker. Unverified.",
        table=by_magnitude(imagenet=scanned(0, 10), cifar=scanned(0, 10), amount=(0, lambda m: 0.1 * m)),
        draw=_draw_sign,
        apply=_color_balance,
    ),
    unit(
        name="cbar:hue_shift",
        description="Turns all hues by the same angle, in one direction or the other. Unverified.",
        table=by_magnitude(imagenet=scanned(0, 10), cifar=scanned(0, 10), turns=(0, lambda m: 0.05 * m)),
        draw=_draw_sign,
        apply=_hue_shift,
    ),
    unit(
        name="cbar:color_dither",
        description="Rounds values to a few levels, passing the errors on along each row. Unverified.",
        table=by_magnitude(
            imagenet=scanned(2, 12), cifar=scanned(0, 10), levels=(256, lambda m: 14 - int(m)), rounded=("levels",)
        ),
        apply=_color_dither,
    ),
)
