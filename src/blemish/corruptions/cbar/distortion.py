"""C̄'s distortions: light through moving water, twirls in cells, and ripples."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.cbar.caustics import Water, caustics, draw_water
from blemish.corruptions.cbar.published import (
    as_bytes,
    by_magnitude,
    float64_per_image,
    pixel_axes,
    uniform,
    unit,
)
from blemish.corruptions.draws import signs
from blemish.corruptions.moves import by_map
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.filters import gaussian_blur
from blemish.ops.positions import Positions
from blemish.ops.warp import bilinear

# As in `blemish.ops.compiled.water`.
_STEEP = 0.999  # where the surface lies flatter, light goes straight
_INDEX = 4  # of refraction


def _surface(images: Tensor, draw: Water) -> Tensor:
    """The pattern as the heights of a smooth surface, (B, 1, H, W)."""
    pattern = caustics(images, draw).unsqueeze_(1)
    return gaussian_blur(pattern, torch.ones(len(images), dtype=torch.float64), border="reflect")


def _lens(images: Tensor, params: Params) -> Tensor:
    """How strongly the surface bends light, in pixels, (B, 1, 1)."""
    return float64_per_image(params, "lens", images).flatten(1, 2) * min(images.shape[-2:])


def _refracted(images: Tensor, params: Params, draw: Water) -> tuple[Tensor, Tensor, Tensor]:
    """The rows and columns that are seen through the surface, and its shade, (B, H, W)."""
    surface = F.pad(_surface(images, draw)[:, 0], (1, 1, 1, 1))
    down = surface[:, 2:, 1:-1] - surface[:, :-2, 1:-1]
    right = surface[:, 1:-1, 2:] - surface[:, 1:-1, :-2]
    square = down * down + right * right
    upward = (square + 1).rsqrt_()
    ahead = 1 - square.mul_(upward.square()).div_(_INDEX**2)
    # A product, because the square roots of torch are not rounded to the nearest double.
    bent = (ahead * ahead.rsqrt()).sub_(upward / _INDEX).mul_(upward)
    bent = torch.where(upward >= _STEEP, 0, bent).mul_(_lens(images, params))
    rows, columns = pixel_axes(images)
    shifts = [(slope * bent).mul_(1000).round_().div_(1000) for slope in (down, right)]
    return rows + shifts[0], columns + shifts[1], down - right


def _caustic_refraction(images: Tensor, params: Params, draw: Water) -> Tensor:
    """The pattern is a surface: its slopes bend the light that comes through it, and shade it."""
    kernels = compiled("water") if images.device.type == "cpu" else None
    if kernels is not None:
        out = torch.empty(images.shape, dtype=torch.uint8)
        strengths = [_lens(images, params).flatten(), params["lighting"].to(torch.float64)]
        shared_out(kernels.refracted, [images.contiguous(), _surface(images, draw)[:, 0], *strengths, out])
        return out
    rows, columns, shade = _refracted(images, params, draw)
    seen = bilinear(images, rows, columns).div_(255)
    return as_bytes(
        shade.unsqueeze_(1).mul_(float64_per_image(params, "lighting", images)).add(seen).clamp_(0, 1).mul_(255)
    )


def _through_water(images: Tensor, params: Params, draw: Water) -> Positions:
    rows, columns, _ = _refracted(images, params, draw)
    return Positions(columns, rows)


class Twirls(NamedTuple):
    """Which way each cell turns, +1 or −1, float64 (B, rows of cells, columns of cells)."""

    signs: Tensor


def _cells(params: Params, height: int, width: int) -> tuple[int, int, int]:
    """The side of the cells, and how many rows and columns of them there are; the same in all images of a batch."""
    along = int(params["cells"][0])
    side = min(height, width)
    return side // along, along * height // side, along * width // side


def _draw_twirls(shape: Shape, params: Params, rng: CounterRng) -> Twirls:
    _, rows, columns = _cells(params, shape.height, shape.width)
    return Twirls(signs(rng, "signs", rows, columns).to(torch.float64))


def _twirled(images: Tensor, params: Params, draw: Twirls) -> tuple[Tensor, Tensor]:
    """The rows and columns that pixels come from, (B, H, W).

    Within the circle in each cell, points come from further out, and are turned, the nearer the centre the more.

    The reference changes one cell after the other, but never reads a pixel of a cell that is already changed.
    """
    height, width = images.shape[-2:]
    side, tall, wide = _cells(params, height, width)
    rows, columns = pixel_axes(images)
    cell = []
    for axis, count in ((rows, tall), (columns, wide)):
        number = (axis / side).floor_()
        cell.append((number.clamp(max=count - 1).to(torch.int64), axis - (number * side + side / 2), number < count))
    (row, down, in_rows), (column, right, in_columns) = cell
    distance = (down * down + right * right).sqrt_()
    turned = in_rows & in_columns & (distance <= side / 2) & (distance >= 0.0005)
    part = (distance / (side / 2)).clamp_(1e-6, 1)
    stretch = (part * (math.pi / 2)).sin_().pow(-float64_per_image(params, "amount", images).flatten(1, 2))
    sign = draw.signs[:, row, column]
    angle = sign * float64_per_image(params, "angle", images).flatten(1, 2) * (1 - part).square_()
    cos, sin = angle.cos(), angle.sin_()
    y, x = down * stretch, right * stretch
    from_rows = torch.where(turned, rows - down + (y * cos - x * sin), rows)
    from_columns = torch.where(turned, columns - right + (y * sin + x * cos), columns)
    return from_rows, from_columns


def _pinch_and_twirl(images: Tensor, params: Params, draw: Twirls) -> Tensor:
    return as_bytes(bilinear(images, *_twirled(images, params, draw)))


def _through_twirls(images: Tensor, params: Params, draw: Twirls) -> Positions:
    rows, columns = _twirled(images, params, draw)
    return Positions(columns, rows)


class Ripples(NamedTuple):
    """Wave lengths in pixels and phases, down and right, float64 (B, 2)."""

    lengths: Tensor
    phases: Tensor


def _draw_ripples(shape: Shape, params: Params, rng: CounterRng) -> Ripples:
    lengths = uniform(rng, "lengths", 0.1, 0.3, 2) * min(shape.height, shape.width)
    return Ripples(lengths, uniform(rng, "phases", 0, 2 * math.pi, 2))


def _rippled(images: Tensor, params: Params, draw: Ripples) -> tuple[Tensor, Tensor]:
    """The rows (B, H, 1) and columns (B, 1, W) that pixels come from."""
    amplitude = float64_per_image(params, "amplitude", images).flatten(1, 2) * min(images.shape[-2:])
    lengths, phases = (values[..., None, None] for values in draw)
    rows, columns = (
        axis + amplitude * (2 * math.pi * axis / lengths[:, i] + phases[:, i]).sin_()
        for i, axis in enumerate(pixel_axes(images))
    )
    return rows, columns


def _ripple(images: Tensor, params: Params, draw: Ripples) -> Tensor:
    return as_bytes(bilinear(images, *_rippled(images, params, draw)))


def _through_ripples(images: Tensor, params: Params, draw: Ripples) -> Positions:
    rows, columns = _rippled(images, params, draw)
    height, width = images.shape[-2:]
    return Positions(columns.expand(-1, height, -1), rows.expand(-1, -1, width))


caustic_refraction = unit(
    name="cbar:caustic_refraction",
    description="Shows the image through moving water, with its bright lines.",
    # Published for 224 pixels. For 32 the same steps of the range that was scanned there.
    table=by_magnitude(
        imagenet=(2.35, 3.2, 4.9, 6.6, 9.15),
        cifar=(1.4, 1.8, 2.6, 3.4, 4.6),
        lens=(0, lambda m: 0.05 * m),
        lighting=(0, lambda m: 0.2 * m),
    ),
    draw=draw_water,
    apply=_caustic_refraction,
    moves=by_map(_through_water),
    uint8_io=True,
)


def _twirls(cells: int, *magnitudes: float) -> list[tuple[float, float, float]]:
    """The rows of a table for so many cells along the shorter side."""
    return [(0, 0, cells), *((math.pi * m / 20, 0.04 * m + 0.1, cells) for m in magnitudes)]


pinch_and_twirl = unit(
    name="cbar:pinch_and_twirl",
    description="Pinches and twirls the image within the cells of a grid, one way or the other.",
    # Published for 32 pixels. For 224 the same steps of the range that was scanned there.
    table=SeverityTable.by_preset(
        ("angle", "amount", "cells"),
        imagenet=_twirls(5, 4.15, 4.8, 5.45, 8.05, 10),
        imagenet64=_twirls(3, 5.5, 6, 6.5, 8.5, 10),
        cifar=_twirls(3, 5.5, 6, 6.5, 8.5, 10),
    ),
    draw=_draw_twirls,
    apply=_pinch_and_twirl,
    moves=by_map(_through_twirls),
    shared=("cells",),
    uint8_io=True,
)

ripple = unit(
    name="cbar:ripple",
    description="Moves rows and columns in waves.",
    # Published for 32 pixels. For 224 the same steps of the range that was scanned there.
    table=by_magnitude(
        imagenet=(3.25, 4, 4.75, 6.25, 7), cifar=(5.5, 6, 6.5, 7.5, 8), amplitude=(0, lambda m: 0.0025 * m)
    ),
    draw=_draw_ripples,
    apply=_ripple,
    moves=by_map(_through_ripples),
    uint8_io=True,
)
