"""C̄'s candidates that add patterns or scatter pixels and colours."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption
from blemish.corruptions.cbar.blur import faded, spline_levels
from blemish.corruptions.cbar.candidates.published import scanned, unit
from blemish.corruptions.cbar.caustics import Water, caustics, draw_water
from blemish.corruptions.cbar.published import as_bytes, by_magnitude, float64_per_image, in_colour, pixel_axes, uniform
from blemish.corruptions.cbar.spectral import Phases, add_shaped_noise, draw_three, square_frequencies
from blemish.corruptions.draws import signs
from blemish.corruptions.moves import A_LITTLE
from blemish.corruptions.severity import Params
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.warp import bilinear

_HASH = ((13.85, 47.77), (99.41, 88.48))
_SMALLEST_PART = 20  # of the shorter side, in cells


class Cells(NamedTuple):
    """Voronoi's cells: what their points are hashed with, how dark they are, their size in pixels, and +1 or −1.

    Float64 (B, 1, 1, 1).
    """

    seed: Tensor
    density: Tensor
    size: Tensor
    sign: Tensor


def _draw_cells(shape: Shape, params: Params, rng: CounterRng) -> Cells:
    return Cells(
        uniform(rng, "seed", 0, 10, 1, 1, 1),
        uniform(rng, "density", 0.5, 0.9, 1, 1, 1),
        uniform(rng, "size", 1 / _SMALLEST_PART, 0.2, 1, 1, 1) * min(shape.height, shape.width),
        signs(rng, "sign", 1, 1, 1).to(torch.float64),
    )


def _voronoi(images: Tensor, params: Params, draw: Cells) -> Tensor:
    """The distance to the nearest of one random point in each cell of a grid, as light or shade."""
    rows, columns = pixel_axes(images)
    x, y = columns / draw.size + 1, rows / draw.size + 1
    step = _nearest_point(x, y, _points(draw, *images.shape[-2:])).mul_(draw.density).clamp_(0, 1)
    light = step * step * (3 - 2 * step) - 0.5
    return as_bytes(images + light.mul_(draw.sign * float64_per_image(params, "intensity", images)))


def _points(draw: Cells, height: int, width: int) -> Tensor:
    """The place of the point in each cell of the grid, right and down, (B, 2, rows, columns).

    The image lies in the cells from number 1 on, and points of neighbouring cells count. Cells are at least a twentieth
    of the shorter side long.
    """
    down, right = (
        torch.arange(_SMALLEST_PART * side // min(height, width) + 4, dtype=torch.float64, device=draw.seed.device)
        for side in (height, width)
    )
    places = []
    for a, b in _HASH:
        word = right * a + down[:, None] * b
        places.append((word.sin() * word.sqrt() * draw.seed * 0.0025).remainder_(1))
    return torch.cat(places, dim=1)


def _nearest_point(x: Tensor, y: Tensor, points: Tensor) -> Tensor:
    """The distance to the nearest point, at most 1, at places (B, 1, 1, W) and (B, 1, H, 1) in cells; (B, 1, H, W)."""
    shape = (len(points), 1, y.shape[-2], x.shape[-1])
    kernels = compiled("doubles") if x.device.type == "cpu" else None
    if kernels is not None:
        assert int(x.max()) + 2 <= points.shape[3], "more columns of cells than points"
        assert int(y.max()) + 2 <= points.shape[2], "more rows of cells than points"
        out = torch.empty(shape, dtype=torch.float64)
        shared_out(kernels.cells, [x.flatten(1), y.flatten(1), points, out[:, 0]])
        return out
    cell_x, cell_y = x.floor(), y.floor()
    flat = points.flatten(2)
    nearest = torch.ones((), dtype=torch.float64, device=x.device)
    for right in (-1, 0, 1):
        for down in (-1, 0, 1):
            number = ((cell_y + down) * points.shape[-1] + (cell_x + right)).to(torch.int64).flatten(1)
            place_x, place_y = (flat[:, axis].gather(1, number).view(shape) for axis in (0, 1))
            offset_x, offset_y = place_x + (right + cell_x - x), place_y + (down + cell_y - y)
            nearest = torch.minimum(nearest, offset_x.square_() + offset_y.square_())
    return nearest.sqrt_()


def _caustic_noise(images: Tensor, params: Params, draw: Water) -> Tensor:
    return as_bytes(images + caustics(images, draw).unsqueeze_(1).mul_(float64_per_image(params, "intensity", images)))


def _blue_noise(images: Tensor, params: Params, draw: Phases) -> Tensor:
    return add_shaped_noise(images, params, draw, square_frequencies(images).sqrt_())


class Scatter(NamedTuple):
    """What places are hashed with, float64 (B, 1, 1)."""

    seed: Tensor


def _draw_scatter(shape: Shape, params: Params, rng: CounterRng) -> Scatter:
    return Scatter(uniform(rng, "seed", 0, 10, 1, 1))


def _scatter(images: Tensor, params: Params, draw: Scatter) -> Tensor:
    """Each pixel comes from anywhere within `radius`, by a hash of its place."""
    height, width = images.shape[-2:]
    rows, columns = pixel_axes(images)
    radius = float64_per_image(params, "radius", images).flatten(1, 2) * min(height, width)

    def hashed(first: Tensor, second: Tensor) -> Tensor:
        word = (first * draw.seed).sin_().mul_(12.9898) + (second * draw.seed).cos_().mul_(78.233)
        return word.sin_().mul_(43758.5453).remainder_(1).mul_(2).sub_(1)

    y = (rows + radius * hashed(rows, columns)).clamp_(0, height - 1)
    x = (columns + radius * hashed(columns, rows)).clamp_(0, width - 1)
    return as_bytes(bilinear(images, y, x))


class Angles(NamedTuple):
    """The direction in which each channel moves, radians, float64 (B, 3) on the CPU."""

    angles: Tensor


def _draw_angles(shape: Shape, params: Params, rng: CounterRng) -> Angles:
    return Angles(uniform(rng.on_cpu(), "angles", 0, 2 * math.pi, 3))


def _chromatic(images: Tensor, params: Params, draw: Angles) -> Tensor:
    """Cubic splines without their filter blur a little: below severity 1 the image fades into it."""
    distance = params["distance"][:, None] * min(images.shape[-2:])
    moves = (distance * draw.angles.cos(), distance * draw.angles.sin())
    down, across = (torch.arange(size) - move[..., None] for size, move in zip(images.shape[-2:], moves, strict=True))
    return faded(images, in_colour(images, lambda levels: spline_levels(levels, down, across)), params)


PATTERNS: tuple[Corruption, ...] = (
    unit(
        name="cbar:voronoi_noise",
        description="Adds light or shade in the cells around random points. Unverified.",
        table=by_magnitude(imagenet=scanned(2.5, 10), cifar=scanned(1, 5), intensity=(0, lambda m: 25.5 * m)),
        draw=_draw_cells,
        apply=_voronoi,
        uint8_io=True,
    ),
    unit(
        name="cbar:caustic_noise",
        description="Adds the bright lines at the bottom of moving water. Unverified.",
        table=by_magnitude(imagenet=scanned(2.5, 10), cifar=scanned(2, 7), intensity=(0, lambda m: 25.5 * m)),
        draw=draw_water,
        apply=_caustic_noise,
        uint8_io=True,
    ),
    unit(
        name="cbar:blue_noise",
        description="Adds coloured noise of high frequencies. Unverified.",
        table=by_magnitude(imagenet=scanned(0, 7), cifar=scanned(0, 2), intensity=(0, lambda m: 19.6 * m)),
        draw=draw_three,
        apply=_blue_noise,
        uint8_io=True,
    ),
    unit(
        name="cbar:scatter",
        description="Takes each pixel from somewhere near it. Unverified.",
        table=by_magnitude(imagenet=scanned(0, 5), cifar=scanned(1, 5), radius=(0, lambda m: 0.01 * m)),
        draw=_draw_scatter,
        apply=_scatter,
        moves=A_LITTLE,
        uint8_io=True,
    ),
    unit(
        name="cbar:chromatic_abberation",
        description="Moves the three channels in different directions. Unverified.",
        table=by_magnitude(
            imagenet=scanned(0, 10),
            cifar=scanned(0, 7),
            distance=(0, lambda m: 0.01 * m),
            opacity=(0, lambda _: 1),
        ),
        draw=_draw_angles,
        apply=_chromatic,
        moves=A_LITTLE,
        uint8_io=True,
    ),
)
