"""Edges, distances to them and small whole-number filters on grey levels, by OpenCV's exact rules.

Images are (B, 1, H, W). Inside, a batch lies in one flat array (`_Grid`), so that a shifted copy is a contiguous slice
whatever its direction; values are 16-bit integers, and comparisons give 0 or 1 in that same type. On a CPU this is
several times as fast as strided slices, booleans made from wider types, or `torch.where`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import torch
from torch import Tensor

__all__ = ["canny", "chamfer_distance", "depth", "equalise", "relief"]

# Chamfer weights 1, 1.4 and 2.1969 in units of 1/320 pixel. The last lacks 0.008 units, and that cannot show: lengths
# up to 20 pixels keep their order, and a sum of nine lacks less than one unit, so its whole pixels are the true sum's.
_UNIT, _DIAGONAL, _KNIGHT = 320, 448, 703

# Nine distances fit in 16 bits when counted from the middle of their range.
_LIMIT = 20
_MIDDLE = _LIMIT // 2

# The tangent of 22.5° as OpenCV's Canny has it: its products with the gradients of 8-bit images are exact in float32.
_TAN = 13573 / 32768

# Dilations from one test for convergence to the next. Each test makes a GPU wait; on a CPU it costs less than a step.
_CPU_STEPS, _GPU_STEPS = 2, 4


class _Grid:
    """A batch of images in one flat array, each with a frame around it, and a margin at both ends of the array."""

    def __init__(self, images: Tensor, *, frame: int = 1, reach: int = 2) -> None:
        self.batch, self.frame = len(images), frame
        self.height, self.width = images.shape[-2:]
        self.rows, self.stride = self.height + 2 * frame, self.width + 2 * frame
        self.count = self.batch * self.rows * self.stride
        self.margin = reach * (self.stride + 1)
        self.device = images.device

    def plane(self, value: int, dtype: torch.dtype) -> Tensor:
        """A flat array of one value. Its size is a multiple of 8, so that bytes can be compared eight at a time."""
        size = self.count + 2 * self.margin
        return torch.full((size + -size % 8,), value, dtype=dtype, device=self.device)

    def at(self, plane: Tensor, shift: int = 0, extra: int = 0) -> Tensor:
        """For every pixel in flat order the value that many places on; `extra` more pixels at both ends."""
        start = self.margin + shift - extra
        return plane[start : start + self.count + 2 * extra]

    def framed(self, values: Tensor) -> Tensor:
        return values.view(self.batch, 1, self.rows, self.stride)

    def images(self, values: Tensor) -> Tensor:
        inside = slice(self.frame, -self.frame)
        return self.framed(values)[..., inside, inside]

    def fill_border(self, plane: Tensor, border: Literal["replicate", "reflect101"]) -> Tensor:
        """Gives the pixels just outside the images their values."""
        edge = self.frame - 1
        ring = self.framed(self.at(plane))[..., edge : self.rows - edge, edge : self.stride - edge]
        inner = 1 if border == "replicate" else 2
        # In steps that long a slice holds the two opposite rows or columns.
        ring[..., :: self.height + 1, :] = ring[..., inner : -inner : self.height + 1 - 2 * inner, :]
        ring[..., :: self.width + 1] = ring[..., inner : -inner : self.width + 1 - 2 * inner]
        return plane

    def bordered(self, levels: Tensor, border: Literal["replicate", "reflect101"]) -> Tensor:
        """A 16-bit plane of these images, border filled."""
        plane = self.plane(0, torch.int16)
        self.images(self.at(plane)).copy_(levels)
        return self.fill_border(plane, border)


def _greater(a: Tensor, b: Tensor | int) -> Tensor:
    """a > b as 0 or 1 in the type of a."""
    return torch.gt(a, b, out=torch.empty_like(a))


def _select(mask: Tensor, chosen: Tensor, other: Tensor) -> Tensor:
    """`chosen` where the mask is set, else `other`; all are 0 or 1. Overwrites `chosen`."""
    return chosen.bitwise_xor_(other).bitwise_and_(mask).bitwise_xor_(other)


def canny(levels: Tensor, low: int = 50, high: int = 150) -> Tensor:
    """Edges of 8-bit images as bool: OpenCV's Canny with 3×3 Sobel gradients and the norm |dx| + |dy|.

    Ridges of the norm above `low` are edges if they are connected to one above `high`.
    """
    grid = _Grid(levels)
    across, down = _sobel(grid, grid.bordered(levels, "replicate"))
    falling = across.bitwise_xor(down).bitwise_right_shift_(15)
    across.abs_()
    down.abs_()
    norm = grid.plane(0, torch.int16)
    here = torch.add(across, down, out=grid.at(norm))
    framed = grid.framed(here)
    framed[..., :: grid.height + 1, :] = 0
    framed[..., :: grid.width + 1] = 0
    ridge = _ridges(grid, norm, across, down, falling)
    weak = _greater(here, low).bitwise_and_(ridge)
    strong = _greater(here, high).bitwise_and_(ridge)
    return grid.images(_connected(grid, strong, weak.to(torch.uint8))).view(torch.bool)


def _sobel(grid: _Grid, plane: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients to the right and downwards."""
    step = grid.stride
    across = _smoothed(grid.at(plane, 1, step) - grid.at(plane, -1, step), step)
    down = _smoothed(grid.at(plane, step, 1) - grid.at(plane, -step, 1), 1)
    return across, down


def _smoothed(values: Tensor, step: int) -> Tensor:
    """Weights 1, 2, 1 at three places a flat step apart."""
    return (values[: -2 * step] + values[2 * step :]).add_(values[step:-step], alpha=2)


def _ridges(grid: _Grid, norm: Tensor, across: Tensor, down: Tensor, falling: Tensor) -> Tensor:
    """Where the norm is largest along the gradient, whose direction is one of four. Overwrites `across`.

    Takes absolute gradients, and a mask of those that point to the upper right or lower left. Of equal neighbours the
    first wins in a row or a column, and none on a diagonal.
    """
    bound = across.to(torch.float32).mul_(_TAN).to(torch.int16)
    steep = _greater(down, across.mul_(2).add_(bound))
    flat = torch.ge(bound, down, out=bound)
    here, step = grid.at(norm), grid.stride
    main = _greater(here, torch.maximum(grid.at(norm, -step - 1), grid.at(norm, step + 1)))
    anti = _greater(here, torch.maximum(grid.at(norm, 1 - step), grid.at(norm, step - 1)))
    ridge = _select(falling, anti, main)
    ridge = _select(steep, _summits(grid.at(norm, 0, step), step), ridge)
    return _select(flat, _summits(grid.at(norm, 0, 1), 1), ridge)


def _summits(values: Tensor, step: int) -> Tensor:
    """Where values are greater than the one a flat step before and no less than the one after."""
    rises = _greater(values[step:], values[:-step])
    return _greater(rises[:-step], rises[step:])


def _connected(grid: _Grid, strong: Tensor, weak: Tensor) -> Tensor:
    """The weak pixels that a chain of weak neighbours, diagonal ones included, joins to a strong one."""
    plane, stride = grid.plane(0, torch.uint8), grid.stride
    edges = grid.at(plane).copy_(strong)
    left, middle, right = (grid.at(plane, shift, stride) for shift in (-1, 0, 1))
    rows, block = torch.empty_like(middle), torch.empty_like(edges)
    above, centre, below = rows[: -2 * stride], rows[stride:-stride], rows[2 * stride :]
    steps = _CPU_STEPS if grid.device.type == "cpu" else _GPU_STEPS
    before = plane
    while True:
        for remaining in reversed(range(steps)):
            if remaining == 0:
                before = plane.clone()
            torch.bitwise_or(left, right, out=rows).bitwise_or_(middle)
            torch.bitwise_or(above, below, out=block).bitwise_or_(centre)
            torch.bitwise_and(block, weak, out=edges)
        if torch.equal(before.view(torch.int64), plane.view(torch.int64)):
            return edges


def chamfer_distance(edges: Tensor) -> Tensor:
    """Pixels to the nearest edge pixel, at most 20, as float32: OpenCV's 5×5 chamfer metric.

    That is the length of the shortest chain of straight steps (1), diagonal steps (1.4) and knight's moves (2.1969).
    """
    grid = _distance_grid(edges)
    return grid.images(grid.at(_distances(grid, edges))).to(torch.float32).mul_(1 / _UNIT).add_(_MIDDLE)


def _distance_grid(edges: Tensor) -> _Grid:
    # Frames as wide as the limit keep images, and the ends of their rows, out of each other's reach.
    return _Grid(edges, frame=_MIDDLE, reach=_MIDDLE)


def _distances(grid: _Grid, edges: Tensor) -> Tensor:
    """Distances in 1/320 pixel, less 10 pixels.

    A shortest chain has steps of two kinds at most, one of them the knight's, and each kind in one direction. So
    straight and diagonal runs can be laid first and the knight's on top; a run is a few jumps of growing length. Chains
    through the frame do no harm: there is always one as short inside.
    """
    pixels = grid.plane(_MIDDLE, torch.int8)
    grid.images(grid.at(pixels)).sub_(edges.view(torch.int8), alpha=_LIMIT)
    _run(grid, pixels, 1, _LIMIT, _beside)
    plane = pixels.to(torch.int16).mul_(_UNIT)
    _run(grid, plane, _DIAGONAL, _LIMIT * _UNIT, _diagonally)
    _run(grid, plane, _KNIGHT, _LIMIT * _UNIT, _a_knight_away)
    return plane


def _run(grid: _Grid, plane: Tensor, cost: int, limit: int, nearest: Callable[[_Grid, Tensor, int], Tensor]) -> None:
    """Lowers a plane to what any number of equal steps below the limit reaches; `nearest` is the best one jump away."""
    here = grid.at(plane)
    for jump in _jumps((limit - 1) // cost):
        torch.minimum(here, nearest(grid, plane, jump).add_(jump * cost), out=here)


def _jumps(steps: int) -> Iterator[int]:
    """Jumps that add up to `steps` and, some left out, to any smaller number."""
    done = 0
    while done < steps:
        jump = min(done + 1, steps - done)
        yield jump
        done += jump


def _beside(grid: _Grid, plane: Tensor, jump: int) -> Tensor:
    columns = torch.minimum(grid.at(plane, -jump * grid.stride), grid.at(plane, jump * grid.stride))
    rows = torch.minimum(grid.at(plane, -jump), grid.at(plane, jump))
    return torch.minimum(columns, rows, out=rows)


def _corners(grid: _Grid, plane: Tensor, down: int, right: int) -> Tensor:
    columns = torch.minimum(grid.at(plane, -down * grid.stride, right), grid.at(plane, down * grid.stride, right))
    return torch.minimum(columns[: -2 * right], columns[2 * right :])


def _diagonally(grid: _Grid, plane: Tensor, jump: int) -> Tensor:
    return _corners(grid, plane, jump, jump)


def _a_knight_away(grid: _Grid, plane: Tensor, jump: int) -> Tensor:
    upright = _corners(grid, plane, 2 * jump, jump)
    return torch.minimum(upright, _corners(grid, plane, jump, 2 * jump), out=upright)


def _block_sums(grid: _Grid, plane: Tensor) -> Tensor:
    """The sum of each 3×3 block."""
    step = grid.stride
    values = grid.at(plane, 0, step + 1)
    rows = (values[:-2] + values[2:]).add_(values[1:-1])
    return (rows[: -2 * step] + rows[2 * step :]).add_(rows[step:-step])


def depth(edges: Tensor) -> Tensor:
    """The mean chamfer distance in each 3×3 block, in whole pixels rounded down, as int32."""
    grid = _distance_grid(edges)
    plane = grid.fill_border(_distances(grid, edges), "reflect101")
    total = grid.images(_block_sums(grid, plane)).to(torch.float32)
    block = 9 * _UNIT
    return total.add_(_MIDDLE * block + 0.5).mul_(1 / block).to(torch.int32)


def equalise(levels: Tensor) -> Tensor:
    """Histogram equalisation of 8-bit levels per image, by OpenCV's rule, as int16.

    The darkest level present becomes 0 and the brightest 255; an image of one level keeps it.
    """
    batch, size = len(levels), levels[0].numel()
    index = levels.reshape(batch, size).to(torch.int32)
    if batch > 1:
        index = index + torch.arange(0, 256 * batch, 256, dtype=torch.int32, device=levels.device)[:, None]
    index = index.flatten()
    upto = _histogram(index, 256 * batch).view(batch, 256).cumsum(1).to(torch.float32)
    darkest = upto.masked_fill(upto == 0, size).amin(1, keepdim=True)
    # A true division: a Python number over a tensor would be a rounded reciprocal, times that number.
    scale = torch.full_like(darkest, 255).div_(size - darkest)
    table = (upto - darkest).mul_(scale).round_()
    table = torch.where(darkest < size, table, torch.arange(256, device=levels.device))
    return table.to(torch.int16).flatten().index_select(0, index).view(levels.shape)


def _histogram(index: Tensor, bins: int) -> Tensor:
    if index.device.type == "cpu":
        return torch.bincount(index, minlength=bins)
    # On a GPU bincount would wait to learn the largest index.
    ones = torch.ones_like(index)
    return torch.zeros(bins, dtype=torch.int32, device=index.device).scatter_add_(0, index.long(), ones)


def relief(levels: Tensor) -> Tensor:
    """8-bit levels lit from one corner, then smoothed, as float32 whole numbers.

    The kernel [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], clipped to 0 … 255, and the rounded 3×3 mean of the result.
    """
    grid = _Grid(levels)
    plane, step = grid.bordered(levels, "reflect101"), grid.stride
    lit = grid.plane(0, torch.int16)
    slope = torch.sub(grid.at(plane, step + 1), grid.at(plane, -step - 1), out=grid.at(lit))
    slope.mul_(2).add_(grid.at(plane))
    slope.add_(grid.at(plane, 1)).sub_(grid.at(plane, -1))
    slope.add_(grid.at(plane, step)).sub_(grid.at(plane, -step)).clamp_(0, 255)
    total = grid.images(_block_sums(grid, grid.fill_border(lit, "reflect101")))
    return total.to(torch.float32).mul_(1 / 9).round_()
