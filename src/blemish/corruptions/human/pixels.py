"""Stimuli that change pixels where they are, or turn them: gray, contrast, noise, rotation and false colour."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.corruptions.base import per_image
from blemish.corruptions.draws import Field, draw_pixel_uniforms
from blemish.corruptions.human.published import (
    BACKGROUND,
    FADING,
    SEVERITIES,
    arrays,
    at_halves,
    on_gray,
    unit,
)
from blemish.corruptions.moves import by_map
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.positions import Positions, pixel_places
from blemish.ops.transfer import to_device


def _colour(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    return on_gray(images, params, lambda plain: plain)


def _contrast(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    factor = per_image(params["contrast"], images)
    return on_gray(images, params, lambda plain: plain.mul_(factor).add_((1 - factor) / 2))


# The contrast of images under noise, so that little of it is clipped.
_UNDER_NOISE = 0.3


def _uniform_noise(images: Tensor, params: Params, draw: Field) -> Tensor:
    noise = (draw.field * 2 - 1).mul_(per_image(params["width"], images))
    return on_gray(images, params, lambda plain: plain.mul_(_UNDER_NOISE).add_((1 - _UNDER_NOISE) / 2).add_(noise))


def _turned(images: Tensor, quarters: int) -> Tensor:
    """Turned anticlockwise about the centre; what comes from outside an oblong image is the screen's gray."""
    height, width = images.shape[-2:]
    turned = images.rot90(quarters, (-2, -1))
    down, right = height - turned.shape[-2], width - turned.shape[-1]
    if down == right == 0:
        return turned
    margins = (right // 2, right - right // 2, down // 2, down - down // 2)
    return F.pad(turned, margins, value=BACKGROUND)


def _rotation(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """The gray of the stimuli fades in below severity 1; turns are by whole quarters."""
    plain = on_gray(images, params, lambda plain: plain)
    quarters = per_image(params["quarters"], images)
    out = plain
    for number in (1, 2, 3):
        out = torch.where(quarters == number, _turned(plain, number), out)
    return out


def _quarter_turns(images: Tensor, params: Params, draw: tuple[()]) -> Positions:
    height, width = images.shape[-2:]
    x, y = pixel_places(len(images), height, width)
    top, left = (height - width) // 2, (width - height) // 2
    quarters = params["quarters"].view(-1, 1, 1)
    columns = [x, width - 1 - (y - top), width - 1 - x, y - top]
    rows = [y, x - left, height - 1 - y, height - 1 - (x - left)]
    chosen = quarters.expand_as(x).to(torch.int64)[None]
    from_x, from_y = (torch.stack(places).gather(0, chosen)[0] for places in (columns, rows))
    return Positions(from_x, from_y)


# From the light of the screen's three colours to the responses of the eye's cones, and on to opponent axes: luminance,
# red against green, and blue against yellow.
_CONES = (
    (0.1619982647, 0.208049264, 0.0389347448),
    (0.0330275785, 0.2496504557, 0.0618343518),
    (0.0015524055, 0.0198861001, 0.1890224274),
)
_WHITE = (0.20449114, 0.17225619, 0.10523047)
_OPPONENT = (
    (9.27590805, 9.27590805, 0),
    (7.86421647, -9.33587662, 0),
    (-3.39709047, -3.39709047, 12.16230246),
)


_GUESSES = 4096  # more than there are levels, most of which are therefore found at once


def _false_colour(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """The two colour axes are multiplied by `factor`, −1 for opposite colours; luminance, and so grays, stay."""
    if levels.shape[1] == 1:
        return levels
    device = levels.device
    light = arrays().light
    cones, opponent = (torch.tensor(matrix, dtype=torch.float64) for matrix in (_CONES, _OPPONENT))
    axes = opponent @ cones
    factors = torch.stack([torch.ones_like(params["factor"]), params["factor"], params["factor"]], dim=1)
    change = torch.linalg.solve(axes, factors[:, :, None] * axes)
    white = torch.linalg.solve(cones, torch.tensor(_WHITE, dtype=torch.float64))
    shift = white - change @ white
    screen = to_device(light, device).index_select(0, levels.flatten().to(torch.int64)).view(levels.shape)
    # Written out, because products of matrices may be rounded differently in other company.
    matrix, offset = to_device(change, device)[..., None, None], to_device(shift, device)[..., None, None]
    mixed = [sum(matrix[:, i, j] * screen[:, j] for j in range(3)) + offset[:, i] for i in range(3)]
    wanted = torch.stack(mixed, dim=1).clamp_(0, 1)
    midway = (light[1:] + light[:-1]) / 2
    kernels = compiled("nearest") if device.type == "cpu" else None
    if kernels is None:
        return torch.bucketize(wanted, to_device(midway, device)).to(torch.uint8)
    out = torch.empty(wanted.shape, dtype=torch.uint8)
    guesses = torch.bucketize(torch.linspace(0, 1, _GUESSES + 1, dtype=torch.float64), midway)
    shared_out(kernels.nearest_levels, [wanted.flatten(), out.flatten()], midway.numpy(), guesses.numpy())
    return out


colour = unit(
    name="human:colour",
    description="Takes the colour away.",
    table=SeverityTable.linear(opacity=(0, 1)),
    apply=_colour,
    severities=SEVERITIES[1],
)

contrast = unit(
    name="human:contrast",
    description="Takes colour and contrast away.",
    table=SeverityTable.halves(contrast=at_halves(1, 0.5, 0.3, 0.15, 0.1, 0.05, 0.03, 0.01), opacity=FADING),
    apply=_contrast,
    severities=SEVERITIES[7],
)

uniform_noise = unit(
    name="human:uniform_noise",
    description="Adds uniform noise to a gray image of low contrast.",
    table=SeverityTable.halves(width=at_halves(0, 0.03, 0.05, 0.1, 0.2, 0.35, 0.6, 0.9), opacity=FADING),
    draw=draw_pixel_uniforms,
    apply=_uniform_noise,
    severities=SEVERITIES[7],
)

rotation = unit(
    name="human:rotation",
    description="Turns the gray image by one, two or three quarters, anticlockwise.",
    table=SeverityTable.halves(quarters=at_halves(0, 1, 2, 3), opacity=FADING, rounded=("quarters",)),
    apply=_rotation,
    moves=by_map(_quarter_turns),
    severities=SEVERITIES[3],
)

false_colour = unit(
    name="human:false_colour",
    description="Turns colours into their opposites and keeps their luminance.",
    table=SeverityTable.linear(factor=(1, -1)),
    apply=_false_colour,
    severities=SEVERITIES[1],
    uint8_io=True,
)
