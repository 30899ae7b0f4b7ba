"""Edges, distances to them and small whole-number filters on grey levels, by OpenCV's exact rules.

Images are (B, 1, H, W). Inside, a batch lies in one flat array (`Grid`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from blemish.ops.compiled import compiled
from blemish.ops.fused import fused, kernels_for
from blemish.ops.grid import Flat, Grid, in_numpy

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


# Canny's thresholds.
LOW, HIGH = 50, 150


def drop_light(levels: Tensor) -> Tensor:
    """How bright drops are: the relief of the equalised depth that they have inside of their outlines, as float32."""
    if min(levels.shape[-2:]) > 1:
        kernels = fused("drops", levels.device)
        if kernels is not None:
            light: Tensor = kernels.drop_light(levels, LOW, HIGH)
            return light
        kernels = compiled("drops") if levels.device.type == "cpu" else None
        if kernels is not None:
            light = torch.empty(levels.shape, dtype=torch.float32, device="cpu")
            kernels.drop_light(levels.contiguous().numpy(), LOW, HIGH, light.numpy())
            return light
    return relief(equalise(depth(canny(levels))))


def canny(levels: Tensor, low: int = LOW, high: int = HIGH) -> Tensor:
    """Edges of 8-bit images as bool: OpenCV's Canny with 3×3 Sobel gradients and the norm |dx| + |dy|.

    Ridges of the norm above `low` are edges if they are connected to one above `high`.
    """
    grid = Grid(levels)
    across, down = _sobel(grid, grid.fill_border(grid.load(grid.plane(0, "int16"), levels), "replicate"))
    falling = (across ^ down) < 0
    across, down = abs(across), abs(down)
    norm = grid.plane(0, "int16")
    here = grid.library.add(across, down, out=grid.at(norm))
    framed = grid.framed(here)
    framed[..., :: grid.height + 1, :] = 0
    framed[..., :: grid.width + 1] = 0
    weak = _ridges(grid, norm, across, down, falling)
    weak &= here > low
    return grid.images(_connected(grid, weak & (here > high), weak))


def _sobel(grid: Grid, plane: Flat) -> tuple[Flat, Flat]:
    """The gradients to the right and downwards."""
    step = grid.stride
    across = _smoothed(grid.at(plane, 1, step) - grid.at(plane, -1, step), step)
    down = _smoothed(grid.at(plane, step, 1) - grid.at(plane, -step, 1), 1)
    return across, down


def _smoothed(values: Flat, step: int) -> Flat:
    """Weights 1, 2, 1 at three places a flat step apart."""
    pairs = values[step:] + values[:-step]
    return pairs[step:] + pairs[:-step]


def _ridges(grid: Grid, norm: Flat, across: Flat, down: Flat, falling: Flat) -> Flat:
    """Where the norm is largest along the gradient, whose direction is one of four.

    Takes absolute gradients, and which of them point to the upper right or lower left. Of equal neighbours the first
    wins in a row or a column, and none on a diagonal.
    """
    bound = grid.cast(across, "float32")
    bound *= _TAN
    bound = grid.cast(bound, "int16")
    flat = down <= bound
    bound += across
    bound += across
    steep = down > bound
    here, step = grid.at(norm), grid.stride
    main = here > grid.library.maximum(grid.at(norm, -step - 1), grid.at(norm, step + 1))
    anti = here > grid.library.maximum(grid.at(norm, 1 - step), grid.at(norm, step - 1))
    ridge = _select(falling, anti, main)
    ridge = _select(steep, _summits(grid.at(norm, 0, step), step), ridge)
    return _select(flat, _summits(grid.at(norm, 0, 1), 1), ridge)


def _select(mask: Flat, chosen: Flat, other: Flat) -> Flat:
    """`chosen` where the mask is set, else `other`, which it overwrites. All are booleans."""
    chosen ^= other
    chosen &= mask
    other ^= chosen
    return other


def _summits(values: Flat, step: int) -> Flat:
    """Where values are greater than the one a flat step before and no less than the one after."""
    rises = values[step:] > values[:-step]
    return rises[:-step] & ~rises[step:]


def _connected(grid: Grid, strong: Flat, weak: Flat) -> Flat:
    """The weak pixels that a chain of weak neighbours, diagonal ones included, joins to a strong one.

    Strong pixels are weak as well, and none lies in the frame.
    """
    fused = kernels_for(grid.device)
    if fused is not None:
        return fused.connected(grid.framed(strong), grid.framed(weak)).flatten()
    plane, stride = grid.plane(0, "bool"), grid.stride
    edges = grid.at(plane)
    edges[...] = strong
    left, middle, right = (grid.at(plane, shift, stride) for shift in (-1, 0, 1))
    while True:
        for _ in range(_CPU_STEPS if grid.in_numpy else _GPU_STEPS):
            rows = left | right
            rows |= middle
            grown = rows[: -2 * stride] | rows[2 * stride :]
            grown |= rows[stride:-stride]
            grown &= weak
            changed = grown ^ edges
            edges[...] = grown
        if not bool(changed.any()):
            return edges


def chamfer_distance(edges: Tensor) -> Tensor:
    """Pixels to the nearest edge pixel, at most 20, as float32: OpenCV's 5×5 chamfer metric.

    That is the length of the shortest chain of straight steps (1), diagonal steps (1.4) and knight's moves (2.1969).
    """
    grid = _distance_grid(edges)
    return grid.images(grid.at(_distances(grid, edges))).to(torch.float32).mul_(1 / _UNIT).add_(_MIDDLE)


def _distance_grid(edges: Tensor) -> Grid:
    # Frames as wide as the limit keep images, and the ends of their rows, out of each other's reach.
    return Grid(edges, frame=_MIDDLE, reach=_MIDDLE)


def _distances(grid: Grid, edges: Tensor) -> Flat:
    """Distances in 1/320 pixel, less 10 pixels.

    A shortest chain has steps of two kinds at most, one of them the knight's, and each kind in one direction. So
    straight and diagonal runs can be laid first and the knight's on top; a run is a few jumps of growing length. Chains
    through the frame do no harm: there is always one as short inside.
    """
    pixels = grid.load(grid.plane(0, "int8"), edges)
    pixels *= -_LIMIT
    pixels += _MIDDLE
    _run(grid, pixels, 1, _LIMIT, _beside)
    plane = grid.cast(pixels, "int16")
    plane *= _UNIT
    _run(grid, plane, _DIAGONAL, _LIMIT * _UNIT, _diagonally)
    _run(grid, plane, _KNIGHT, _LIMIT * _UNIT, _a_knight_away)
    return plane


def _run(grid: Grid, plane: Flat, cost: int, limit: int, nearest: Callable[[Grid, Flat, int], Flat]) -> None:
    """Lowers a plane to what any number of equal steps below the limit reaches; `nearest` is the best one jump away."""
    here = grid.at(plane)
    for jump in _jumps((limit - 1) // cost):
        near = nearest(grid, plane, jump)
        near += jump * cost
        grid.library.minimum(here, near, out=here)


def _jumps(steps: int) -> Iterator[int]:
    """Jumps that add up to `steps` and, some left out, to any smaller number."""
    done = 0
    while done < steps:
        jump = min(done + 1, steps - done)
        yield jump
        done += jump


def _beside(grid: Grid, plane: Flat, jump: int) -> Flat:
    minimum, down = grid.library.minimum, jump * grid.stride
    columns = minimum(grid.at(plane, -down), grid.at(plane, down))
    rows = minimum(grid.at(plane, -jump), grid.at(plane, jump))
    return minimum(columns, rows, out=rows)


def _corners(grid: Grid, plane: Flat, down: int, right: int) -> Flat:
    minimum, down = grid.library.minimum, down * grid.stride
    columns = minimum(grid.at(plane, -down, right), grid.at(plane, down, right))
    return minimum(columns[: -2 * right], columns[2 * right :])


def _diagonally(grid: Grid, plane: Flat, jump: int) -> Flat:
    return _corners(grid, plane, jump, jump)


def _a_knight_away(grid: Grid, plane: Flat, jump: int) -> Flat:
    upright = _corners(grid, plane, 2 * jump, jump)
    return grid.library.minimum(upright, _corners(grid, plane, jump, 2 * jump), out=upright)


def _block_sums(grid: Grid, plane: Flat) -> Flat:
    """The sum of each 3×3 block."""
    step = grid.stride
    values = grid.at(plane, 0, step + 1)
    rows = values[:-2] + values[2:]
    rows += values[1:-1]
    blocks = rows[: -2 * step] + rows[2 * step :]
    blocks += rows[step:-step]
    return blocks


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
    if in_numpy(index.device):
        return torch.bincount(index, minlength=bins)
    # On a GPU bincount would wait to learn the largest index.
    ones = torch.ones_like(index)
    return torch.zeros(bins, dtype=torch.int32, device=index.device).scatter_add_(0, index.long(), ones)


def relief(levels: Tensor) -> Tensor:
    """8-bit levels lit from one corner, then smoothed, as float32 whole numbers.

    The kernel [[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], clipped to 0 … 255, and the rounded 3×3 mean of the result.
    """
    grid = Grid(levels)
    plane, step = grid.fill_border(grid.load(grid.plane(0, "int16"), levels), "reflect101"), grid.stride
    lit = grid.plane(0, "int16")
    slope = grid.library.subtract(grid.at(plane, step + 1), grid.at(plane, -step - 1), out=grid.at(lit))
    slope += slope
    for shift in (0, 1, step):
        slope += grid.at(plane, shift)
    for shift in (1, step):
        slope -= grid.at(plane, -shift)
    grid.library.clip(slope, 0, 255, out=slope)
    total = grid.images(_block_sums(grid, grid.fill_border(lit, "reflect101")))
    return total.to(torch.float32).mul_(1 / 9).round_()
