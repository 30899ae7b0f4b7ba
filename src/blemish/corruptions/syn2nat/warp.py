"""Syn2Nat's geometric candidates: maps of the plane, with the mirror image beyond the border unless said otherwise."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, side_scale
from blemish.corruptions.severity import Params, SeverityTable
from blemish.corruptions.syn2nat.published import HALF_LEVEL, SOURCE, span
from blemish.ops.distort import area_enlarged, grid_positions, lens_positions, quadrilateral_map, shifted
from blemish.ops.transfer import to_device
from blemish.ops.warp import affine_from_points, sample, sample_map, snapped, warp_affine

__all__ = ["WARPS"]

_GRID_CELLS = 5
_ROUND_SIZE = 16


def _between(params: Params, rng: CounterRng, name: str) -> Tensor:
    """A value per image, uniform between the parameters `name_low` and `name_high`; (B,) float64 on the CPU."""
    rank = rng.on_cpu().uniforms(name, 1)[:, 0].to(torch.float64)
    return span(rank, params[f"{name}_low"], params[f"{name}_high"])


def _symmetric(rng: CounterRng, name: str, *shape: int) -> Tensor:
    """Float64 in (−1, 1) on the CPU."""
    return rng.on_cpu().uniforms(name, *shape).to(torch.float64) * 2 - 1


def _rounded(images: Tensor) -> Tensor:
    return images.add_(HALF_LEVEL)


def _about_centre(linear: Tensor, height: int, width: int) -> Tensor:
    """The affine map (B, 2, 3) with a linear part (B, 2, 2) that keeps the centre where the originals have it."""
    centre = torch.tensor([[width / 2], [height / 2]], dtype=torch.float64)
    return torch.cat([linear, centre - (linear * centre.T).sum(2, keepdim=True)], dim=2)


class Zoom(NamedTuple):
    """How large the image appears, (B,) float64 on the CPU."""

    scale: Tensor


def _draw_affine(shape: Shape, params: Params, rng: CounterRng) -> Zoom:
    return Zoom(_between(params, rng, "scale"))


def _affine(images: Tensor, params: Params, draw: Zoom) -> Tensor:
    linear = torch.eye(2, dtype=torch.float64) / draw.scale.view(-1, 1, 1)
    return _rounded(warp_affine(images, _about_centre(linear, *images.shape[-2:])))


class Turn(NamedTuple):
    """The angle in degrees, anticlockwise, (B,) float64 on the CPU."""

    degrees: Tensor


def _draw_rotate(shape: Shape, params: Params, rng: CounterRng) -> Turn:
    return Turn(_symmetric(rng, "angle", 1)[:, 0] * params["degrees"])


def _rotate(images: Tensor, params: Params, draw: Turn) -> Tensor:
    angle = torch.deg2rad(draw.degrees)
    linear = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=1).view(-1, 2, 2)
    return _rounded(warp_affine(images, _about_centre(linear, *images.shape[-2:])))


class Shift(NamedTuple):
    """How far right and down, in widths and heights, (B, 2) float64 on the CPU."""

    share: Tensor


def _draw_translate(shape: Shape, params: Params, rng: CounterRng) -> Shift:
    return Shift(_symmetric(rng, "shift", 2) * params["share"][:, None])


def _translate(images: Tensor, params: Params, draw: Shift) -> Tensor:
    height, width = images.shape[-2:]
    return _rounded(shifted(images, draw.share * torch.tensor([width, height], dtype=torch.float64)))


class Moves(NamedTuple):
    """Moves of three points right and down, in pixels, (B, 3, 2) float64 on the CPU."""

    pixels: Tensor


def _draw_elastic(shape: Shape, params: Params, rng: CounterRng) -> Moves:
    reach = params["affine"] * side_scale(shape.height, shape.width)
    return Moves(_symmetric(rng, "corners", 3, 2) * reach.view(-1, 1, 1))


def _elastic(images: Tensor, params: Params, draw: Moves) -> Tensor:
    """The affine map that moves three points about the centre; the edge's values stand beyond the border.

    The original then displaces pixels by a smoothed random field, which at its setting (amplitude 1, standard
    deviation 50) amounts to 0.003 pixels: less than the 1/32 pixel to which it rounds positions. So it is left out.
    """
    height, width = images.shape[-2:]
    arm = min(height, width) // 3
    centre = torch.tensor([width // 2, height // 2], dtype=torch.float64)
    points = centre + arm * torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]], dtype=torch.float64)
    moved = points + draw.pixels
    backward = affine_from_points(points.expand_as(moved), moved)
    return _rounded(sample_map(images, backward, outside="replicate", snap=True))


class Corners(NamedTuple):
    """How far corners move inwards, in widths and heights, clockwise from top left; (B, 4, 2) float64 on the CPU."""

    share: Tensor


def _draw_perspective(shape: Shape, params: Params, rng: CounterRng) -> Corners:
    std = _between(params, rng, "std")
    normals = rng.on_cpu().normals("corners", 4, 2).to(torch.float64)
    return Corners((normals * std.view(-1, 1, 1)).abs() % 1)


def _in_order(points: Tensor) -> Tensor:
    """Four points as top left, top right, bottom right and bottom left: those furthest out in these directions.

    As in the original, a point that lies between the others is furthest out in none, and a neighbour takes its place.
    """
    x, y = points.unbind(2)
    chosen = [(x + y).argmin(1), (x - y).argmax(1), (x + y).argmax(1), (x - y).argmin(1)]
    return points.gather(1, torch.stack(chosen, dim=1)[..., None].expand(-1, -1, 2))


def _sides(quadrilateral: Tensor, axis: int) -> Tensor:
    """The lengths in whole pixels of the two sides along an axis, (B, 2)."""
    starts, ends = ((0, 3), (1, 2)) if axis == 0 else ((0, 1), (3, 2))
    across = quadrilateral[:, ends] - quadrilateral[:, starts]
    return across.square().sum(2).sqrt().floor()


def _widened(quadrilateral: Tensor, axis: int) -> Tensor:
    """Moves the sides across an axis apart until those along it are two pixels long; three moves are always enough."""
    outwards = torch.tensor([-1.0, 1.0, 1.0, -1.0] if axis == 0 else [-1.0, -1.0, 1.0, 1.0], dtype=torch.float64)
    direction = torch.zeros(4, 2, dtype=torch.float64)
    direction[:, axis] = outwards
    for _ in range(3):
        lacking = (2 - _sides(quadrilateral, axis).amin(1)).clamp(min=0) / 2
        quadrilateral = quadrilateral + direction * lacking.view(-1, 1, 1)
    return quadrilateral


def _perspective(images: Tensor, params: Params, draw: Corners) -> Tensor:
    """Cut out a quadrilateral, render it at its own size, and enlarge that to the size of the image.

    The detail that the first of these steps loses is a tenth of the gradient, so that they are no single one.
    """
    height, width = images.shape[-2:]
    sign = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]], dtype=torch.float64)
    points = ((sign < 0) + sign * draw.share) * torch.tensor([width, height], dtype=torch.float64)
    quadrilateral = _widened(_widened(_in_order(points), 0), 1)
    own = torch.stack([_sides(quadrilateral, axis).amax(1) for axis in (0, 1)], dim=1)
    backward = quadrilateral_map(quadrilateral) / torch.nn.functional.pad(own, (0, 1), value=1.0)[:, None]
    # Some more pixels than are shown, so that not every batch has sizes of its own, which may mean kernels of its own.
    most_wide, most_tall = (-(-int(side) // _ROUND_SIZE) * _ROUND_SIZE for side in own.amax(0))
    rendered = sample_map(images, backward, outside="zeros", snap=True, size=(most_tall, most_wide))
    return _rounded(area_enlarged(rendered, own.to(torch.int64), height, width))


class Lens(NamedTuple):
    """The strength of a lens, (B,), and how far right and down of the pixel it looks, in pixels, (B, 2); on the CPU."""

    strength: Tensor
    shift: Tensor


def _draw_optical(shape: Shape, params: Params, rng: CounterRng) -> Lens:
    shift = _symmetric(rng, "shift", 2) * params["shift"][:, None] * side_scale(shape.height, shape.width)
    return Lens(_symmetric(rng, "strength", 1)[:, 0] * params["strength"], shift)


def _optical(images: Tensor, params: Params, draw: Lens) -> Tensor:
    height, width = images.shape[-2:]
    x, y = lens_positions(draw.strength, draw.shift, height, width, images.device)
    return _rounded(sample(images, snapped(x), snapped(y), outside="reflect101"))


class Stretch(NamedTuple):
    """How many times its own length each column and each row of cells shows, (B, cells) float64 on the CPU."""

    columns: Tensor
    rows: Tensor


def _draw_grid(shape: Shape, params: Params, rng: CounterRng) -> Stretch:
    moves = _symmetric(rng, "stretch", 2, _GRID_CELLS) * params["limit"].view(-1, 1, 1)
    columns, rows = (moves + 1).unbind(1)
    return Stretch(columns, rows)


def _grid(images: Tensor, params: Params, draw: Stretch) -> Tensor:
    height, width = images.shape[-2:]
    x, y = grid_positions(draw.columns, width), grid_positions(draw.rows, height)
    x, y = (to_device(snapped(position), images.device, torch.float32) for position in (x, y))
    shape = (len(images), height, width)
    return _rounded(sample(images, x[:, None, :].expand(shape), y[:, :, None].expand(shape), outside="reflect101"))


WARPS: tuple[Corruption, ...] = (
    Corruption(
        name="syn2nat:affine",
        family="syn2nat",
        description="Shrinks the image to 60–80 % and fills up with its mirror image; lower severities shrink less.",
        table=SeverityTable.linear(scale_low=(1, 0.6), scale_high=(1, 0.8)),
        draw=_draw_affine,
        apply=_affine,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:rotate",
        family="syn2nat",
        description="Turns the image by up to ±180°; lower severities by a smaller angle.",
        table=SeverityTable.linear(degrees=(0, 180)),
        draw=_draw_rotate,
        apply=_rotate,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:translate",
        family="syn2nat",
        description="Shifts the image by up to ±70 % of each side; lower severities by less.",
        table=SeverityTable.linear(share=(0, 0.7)),
        draw=_draw_translate,
        apply=_translate,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:elastic_transform",
        family="syn2nat",
        description="Shears and stretches the image by moving three points up to 50 of 224 pixels; "
        "lower severities by less.",
        table=SeverityTable.linear(affine=(0, 50)),
        draw=_draw_elastic,
        apply=_elastic,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:perspective",
        family="syn2nat",
        description="Looks at a part of the image askew: corners move inwards by 10–30 % (std); "
        "lower severities by less.",
        table=SeverityTable.linear(std_low=(0, 0.1), std_high=(0, 0.3)),
        draw=_draw_perspective,
        apply=_perspective,
        severities=(5,),
        source=SOURCE,
        version=2,
    ),
    Corruption(
        name="syn2nat:optical_distortion",
        family="syn2nat",
        description="A strong barrel or pincushion lens, strength up to ±4 and shift ±4 of 224 pixels; "
        "lower severities less.",
        table=SeverityTable.linear(strength=(0, 4), shift=(0, 4)),
        draw=_draw_optical,
        apply=_optical,
        severities=(5,),
        source=SOURCE,
    ),
    Corruption(
        name="syn2nat:grid_distortion",
        family="syn2nat",
        description="Stretches each row and column of a 5 × 5 grid 0- to 2-fold; lower severities nearer to 1.",
        table=SeverityTable.linear(limit=(0, 1)),
        draw=_draw_grid,
        apply=_grid,
        severities=(5,),
        source=SOURCE,
    ),
)
