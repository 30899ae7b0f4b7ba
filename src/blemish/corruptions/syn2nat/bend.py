"""Syn2Nat's perspective, lens and stretched grid."""

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
from blemish.ops.distort import area_enlarged, grid_positions, lens_positions, quadrilateral_map
from blemish.ops.positions import Positions, from_map
from blemish.ops.transfer import to_device
from blemish.ops.warp import sample, sample_map, snapped

_GRID_CELLS = 5
_ROUND_SIZE = 16


class Corners(NamedTuple):
    """How far corners move inwards, in widths and heights, clockwise from top left; (B, 4, 2) float64 on the CPU."""

    share: Tensor


def _draw_perspective(shape: Shape, params: Params, rng: CounterRng) -> Corners:
    std = between(params, rng, "std")
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


def _view(images: Tensor, draw: Corners) -> tuple[Tensor, Tensor]:
    """The map to a quadrilateral from an image of its own size, (B, 3, 3), and that size, (B, 2)."""
    height, width = images.shape[-2:]
    sign = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]], dtype=torch.float64)
    points = ((sign < 0) + sign * draw.share) * torch.tensor([width, height], dtype=torch.float64)
    quadrilateral = _widened(_widened(_in_order(points), 0), 1)
    own = torch.stack([_sides(quadrilateral, axis).amax(1) for axis in (0, 1)], dim=1)
    return quadrilateral_map(quadrilateral) / torch.nn.functional.pad(own, (0, 1), value=1.0)[:, None], own


def _perspective(images: Tensor, params: Params, draw: Corners) -> Tensor:
    """Cut out a quadrilateral, render it at its own size, and enlarge that to the size of the image.

    The detail that the first of these steps loses is a tenth of the gradient, so that they are no single one.
    """
    height, width = images.shape[-2:]
    backward, own = _view(images, draw)
    # Some more pixels than are shown, so that not every batch has sizes of its own, which may mean kernels of its own.
    most_wide, most_tall = (-(-int(side) // _ROUND_SIZE) * _ROUND_SIZE for side in own.amax(0))
    rendered = sample_map(images, backward, outside="zeros", snap=True, size=(most_tall, most_wide))
    return rounded(area_enlarged(rendered, own.to(torch.int64), height, width))


def _seen_askew(images: Tensor, params: Params, draw: Corners) -> Positions:
    """Through the middles of pixels of both images: the smaller one's are squares in the larger."""
    height, width = images.shape[-2:]
    backward, own = _view(images, draw)
    scale = own / torch.tensor([width, height], dtype=torch.float64)
    enlarged = torch.diag_embed(torch.nn.functional.pad(scale, (0, 1), value=1.0))
    enlarged[:, :2, 2] = scale / 2 - 0.5
    return from_map(images, backward @ enlarged, "zeros")


class Lens(NamedTuple):
    """The strength of a lens, (B,), and how far right and down of the pixel it looks, in pixels, (B, 2); on the CPU."""

    strength: Tensor
    shift: Tensor


def _draw_optical(shape: Shape, params: Params, rng: CounterRng) -> Lens:
    shift = symmetric(rng, "shift", 2) * params["shift"][:, None] * side_scale(shape.height, shape.width)
    return Lens(symmetric(rng, "strength", 1)[:, 0] * params["strength"], shift)


def _optical(images: Tensor, params: Params, draw: Lens) -> Tensor:
    height, width = images.shape[-2:]
    x, y = lens_positions(draw.strength, draw.shift, height, width, images.device)
    return rounded(sample(images, snapped(x), snapped(y), outside="reflect101"))


def _through_lens(images: Tensor, params: Params, draw: Lens) -> Positions:
    height, width = images.shape[-2:]
    x, y = lens_positions(draw.strength, draw.shift, height, width, images.device)
    return Positions(x.to(torch.float64), y.to(torch.float64), "reflect101")


class Stretch(NamedTuple):
    """How many times its own length each column and each row of cells shows, (B, cells) float64 on the CPU."""

    columns: Tensor
    rows: Tensor


def _draw_grid(shape: Shape, params: Params, rng: CounterRng) -> Stretch:
    moves = symmetric(rng, "stretch", 2, _GRID_CELLS) * params["limit"].view(-1, 1, 1)
    columns, rows = (moves + 1).unbind(1)
    return Stretch(columns, rows)


def _grid(images: Tensor, params: Params, draw: Stretch) -> Tensor:
    height, width = images.shape[-2:]
    x, y = grid_positions(draw.columns, width), grid_positions(draw.rows, height)
    x, y = (to_device(snapped(position), images.device, torch.float32) for position in (x, y))
    shape = (len(images), height, width)
    return rounded(sample(images, x[:, None, :].expand(shape), y[:, :, None].expand(shape), outside="reflect101"))


def _on_grid(images: Tensor, params: Params, draw: Stretch) -> Positions:
    height, width = images.shape[-2:]
    x, y = grid_positions(draw.columns, width), grid_positions(draw.rows, height)
    shape = (len(images), height, width)
    return Positions(x[:, None, :].expand(shape), y[:, :, None].expand(shape), "reflect101")


BENDS: tuple[Corruption, ...] = (
    unit(
        name="syn2nat:perspective",
        description="Looks at a part of the image askew: corners move inwards by 10–30 % (std); "
        "lower severities by less.",
        table=SeverityTable.linear(std_low=(0, 0.1), std_high=(0, 0.3)),
        draw=_draw_perspective,
        apply=_perspective,
        moves=by_map(_seen_askew),
        version=2,
    ),
    unit(
        name="syn2nat:optical_distortion",
        description="A strong barrel or pincushion lens, strength up to ±4 and shift ±4 of 224 pixels; "
        "lower severities less.",
        table=SeverityTable.linear(strength=(0, 4), shift=(0, 4)),
        draw=_draw_optical,
        apply=_optical,
        moves=by_map(_through_lens),
    ),
    unit(
        name="syn2nat:grid_distortion",
        description="Stretches each row and column of a 5 × 5 grid 0- to 2-fold; lower severities nearer to 1.",
        table=SeverityTable.linear(limit=(0, 1)),
        draw=_draw_grid,
        apply=_grid,
        moves=by_map(_on_grid),
    ),
)
