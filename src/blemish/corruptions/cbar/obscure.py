"""C̄'s coverings: gray cells of a turned checkerboard, and gray lines."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.cbar.published import by_magnitude, float64_per_image, pixel_axes, uniform, unit
from blemish.corruptions.severity import Params
from blemish.ops.bresenham import line_pixels
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.transfer import to_device

_GRAY = 128

# Cells of the board on a side. An image less than three times as long as wide never has as many in a row.
_BOARD = 64


class Board(NamedTuple):
    """A checkerboard: angle in radians and side of its cells in pixels, (B, 1, 1, 1), and ranks of cells (B, n, n).

    Float64, but for the ranks. Numbers of cells count modulo n.
    """

    angle: Tensor
    cell: Tensor
    ranks: Tensor


def _draw_board(shape: Shape, params: Params, rng: CounterRng) -> Board:
    side = min(shape.height, shape.width)
    return Board(
        uniform(rng, "angle", 0, 2 * math.pi, 1, 1, 1),
        (uniform(rng, "cell", 0.1, 0.25, 1, 1, 1) * side).clamp_(min=1),
        rng.uniforms("ranks", _BOARD, _BOARD),
    )


def _checkerboard(images: Tensor, params: Params, draw: Board) -> Tensor:
    """The cells of one colour of the board whose rank is low. Those next to either axis share their ranks.

    As in the reference, numbers of cells are truncated towards zero.
    """
    rows, columns = pixel_axes(images)
    cos, sin = draw.angle.cos(), draw.angle.sin()
    u = (rows * cos + columns * sin).div_(draw.cell)
    v = (columns * cos - rows * sin).div_(draw.cell)
    same_colour = u.remainder(2).floor_() == v.remainder(2).floor_()
    count = draw.ranks.shape[1]
    row, column = (axis.trunc_().to(torch.int64).remainder_(count) for axis in (u, v))
    rank = draw.ranks.flatten(1).gather(1, row.mul_(count).add_(column).flatten(1)).view(u.shape)
    covered = same_colour & (rank < float64_per_image(params, "fraction", images))
    return images.masked_fill(covered, _GRAY)


class Lines(NamedTuple):
    """Directions in radians (B, n) and middles (B, n, 2), row and column in pixels; float64 on the CPU."""

    directions: Tensor
    middles: Tensor


def _count(params: Params, height: int, width: int) -> Tensor:
    """How many lines each image gets. What is whole but for a rounding error counts as whole."""
    return (params["density"] * min(height, width) + 1e-9).floor().to(torch.int64)


def _draw_lines(shape: Shape, params: Params, rng: CounterRng) -> Lines:
    rng = rng.on_cpu()
    most = max(1, int(_count(params, shape.height, shape.width).max()))
    angle, variation = uniform(rng, "angle", 0, 2 * math.pi, 1), uniform(rng, "variation", 0.1, 1, 1)
    # A stream per line: how many words are drawn at once decides about all of them.
    ranks = torch.stack([uniform(rng, f"line {i}", 0, 1, 3) for i in range(most)], dim=1)
    return Lines(
        angle + 2 * math.pi * variation * (ranks[..., 2] - 0.5),
        ranks[..., :2] * torch.tensor([shape.height, shape.width], dtype=torch.float64),
    )


def _lines(images: Tensor, params: Params, draw: Lines) -> Tensor:
    """Lines of one pixel's width, one after the other; levels are truncated after each."""
    channels, height, width = images.shape[1:]
    count = _count(params, height, width)
    reach = max(height, width)
    arm = reach * torch.stack([draw.directions.cos(), draw.directions.sin()], dim=2)
    start, end = (
        to_device(ends.trunc(), images.device, torch.int64) for ends in (draw.middles - arm, draw.middles + arm)
    )
    kernels = compiled("patterns") if images.device.type == "cpu" else None
    if kernels is not None:
        out = images.clone(memory_format=torch.contiguous_format)
        shared_out(kernels.gray_lines, [out, start, end, count], _GRAY)
        return out
    drawn = to_device(torch.arange(start.shape[1]) < count[:, None], images.device)
    flat = torch.cat([images.flatten(2), images.new_zeros(len(images), channels, 1)], dim=2)
    for i in range(int(count.max())):
        places, opacity = line_pixels(start[:, i], end[:, i], height, width, longest=2 * reach + 1)
        places = torch.where(drawn[:, i, None], places, height * width)[:, None].expand(-1, channels, -1)
        opacity = opacity[:, None]
        painted = flat.gather(2, places) * (1 - opacity) + _GRAY * opacity
        flat.scatter_(2, places, painted.to(torch.uint8))
    return flat[..., :-1].reshape(images.shape)


checkerboard_cutout = unit(
    name="cbar:checkerboard_cutout",
    description="Covers some cells of a turned checkerboard with gray.",
    table=by_magnitude(imagenet=(2, 3, 4, 5, 6), cifar=(1, 2, 3, 4, 5), fraction=(0, lambda m: 0.1 * m)),
    draw=_draw_board,
    apply=_checkerboard,
    uint8_io=True,
)

lines = unit(
    name="cbar:lines",
    description="Draws thin gray lines across the image, more or less in one direction.",
    # Published for 32 pixels. For 224 the same steps of the range that was scanned there.
    table=by_magnitude(imagenet=(0.8, 1.6, 2.4, 3.2, 4), cifar=(0.5, 1, 1.5, 2, 2.5), density=(0, lambda m: m / 10)),
    draw=_draw_lines,
    apply=_lines,
    uint8_io=True,
)
