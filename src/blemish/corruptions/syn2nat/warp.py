"""Syn2Nat's affine candidates, with the mirror image beyond the border unless said otherwise."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, side_scale
from blemish.corruptions.moves import by_map
from blemish.corruptions.severity import Params, SeverityTable
from blemish.corruptions.syn2nat.published import unit
from blemish.corruptions.syn2nat.ranges import between, rounded, symmetric
from blemish.ops.distort import shifted
from blemish.ops.positions import Positions, from_map
from blemish.ops.warp import affine_from_points, sample_map, three_points, warp_affine


def _about_centre(linear: Tensor, height: int, width: int) -> Tensor:
    """The affine map (B, 2, 3) with a linear part (B, 2, 2) that keeps the centre where the originals have it."""
    centre = torch.tensor([[width / 2], [height / 2]], dtype=torch.float64)
    return torch.cat([linear, centre - (linear * centre.T).sum(2, keepdim=True)], dim=2)


class Zoom(NamedTuple):
    """How large the image appears, (B,) float64 on the CPU."""

    scale: Tensor


def _draw_affine(shape: Shape, params: Params, rng: CounterRng) -> Zoom:
    return Zoom(between(params, rng, "scale"))


def _zoom(images: Tensor, draw: Zoom) -> Tensor:
    linear = torch.eye(2, dtype=torch.float64) / draw.scale.view(-1, 1, 1)
    return _about_centre(linear, *images.shape[-2:])


def _affine(images: Tensor, params: Params, draw: Zoom) -> Tensor:
    return rounded(warp_affine(images, _zoom(images, draw)))


def _zoomed(images: Tensor, params: Params, draw: Zoom) -> Positions:
    return from_map(images, _zoom(images, draw), "reflect101")


class Turn(NamedTuple):
    """The angle in degrees, anticlockwise, (B,) float64 on the CPU."""

    degrees: Tensor


def _draw_rotate(shape: Shape, params: Params, rng: CounterRng) -> Turn:
    return Turn(symmetric(rng, "angle", 1)[:, 0] * params["degrees"])


def _turn(images: Tensor, draw: Turn) -> Tensor:
    angle = torch.deg2rad(draw.degrees)
    linear = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=1).view(-1, 2, 2)
    return _about_centre(linear, *images.shape[-2:])


def _rotate(images: Tensor, params: Params, draw: Turn) -> Tensor:
    return rounded(warp_affine(images, _turn(images, draw)))


def _turned(images: Tensor, params: Params, draw: Turn) -> Positions:
    return from_map(images, _turn(images, draw), "reflect101")


class Shift(NamedTuple):
    """How far right and down, in widths and heights, (B, 2) float64 on the CPU."""

    share: Tensor


def _draw_translate(shape: Shape, params: Params, rng: CounterRng) -> Shift:
    return Shift(symmetric(rng, "shift", 2) * params["share"][:, None])


def _shift(images: Tensor, draw: Shift) -> Tensor:
    """In pixels, (B, 2)."""
    height, width = images.shape[-2:]
    return draw.share * torch.tensor([width, height], dtype=torch.float64)


def _translate(images: Tensor, params: Params, draw: Shift) -> Tensor:
    return rounded(shifted(images, _shift(images, draw)))


def _translated(images: Tensor, params: Params, draw: Shift) -> Positions:
    same = torch.eye(2, dtype=torch.float64).expand(len(images), 2, 2)
    return from_map(images, torch.cat([same, -_shift(images, draw)[..., None]], dim=2), "reflect101")


class Moves(NamedTuple):
    """Moves of three points right and down, in pixels, (B, 3, 2) float64 on the CPU."""

    pixels: Tensor


def _draw_elastic(shape: Shape, params: Params, rng: CounterRng) -> Moves:
    reach = params["affine"] * side_scale(shape.height, shape.width)
    return Moves(symmetric(rng, "corners", 3, 2) * reach.view(-1, 1, 1))


def _stretch(images: Tensor, draw: Moves) -> Tensor:
    """The affine map that moves three points about the centre."""
    points = torch.from_numpy(three_points(*images.shape[-2:]))
    moved = points + draw.pixels
    return affine_from_points(points.expand_as(moved), moved)


def _elastic(images: Tensor, params: Params, draw: Moves) -> Tensor:
    """The map of three points; the edge's values stand beyond the border.

    The original then displaces pixels by a smoothed random field, which at its setting (amplitude 1, standard
    deviation 50) amounts to 0.003 pixels: less than the 1/32 pixel to which it rounds positions. So it is left out.
    """
    return rounded(sample_map(images, _stretch(images, draw), outside="replicate", snap=True))


def _stretched(images: Tensor, params: Params, draw: Moves) -> Positions:
    return from_map(images, _stretch(images, draw), "replicate")


WARPS: tuple[Corruption, ...] = (
    unit(
        name="syn2nat:affine",
        description="Shrinks the image to 60–80 % and fills up with its mirror image; lower severities shrink less.",
        table=SeverityTable.linear(scale_low=(1, 0.6), scale_high=(1, 0.8)),
        draw=_draw_affine,
        apply=_affine,
        moves=by_map(_zoomed),
    ),
    unit(
        name="syn2nat:rotate",
        description="Turns the image by up to ±180°; lower severities by a smaller angle.",
        table=SeverityTable.linear(degrees=(0, 180)),
        draw=_draw_rotate,
        apply=_rotate,
        moves=by_map(_turned),
    ),
    unit(
        name="syn2nat:translate",
        description="Shifts the image by up to ±70 % of each side; lower severities by less.",
        table=SeverityTable.linear(share=(0, 0.7)),
        draw=_draw_translate,
        apply=_translate,
        moves=by_map(_translated),
    ),
    unit(
        name="syn2nat:elastic_transform",
        description="Shears and stretches the image by moving three points up to 50 of 224 pixels; "
        "lower severities by less.",
        table=SeverityTable.linear(affine=(0, 50)),
        draw=_draw_elastic,
        apply=_elastic,
        moves=by_map(_stretched),
    ),
)
