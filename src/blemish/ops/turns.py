"""The weighted mean of an image turned about its centre by many angles, sampled by cubic splines.

Turned images share most of the neighbours that a pixel is made of. So for each pixel the weights of all turns are added
up, in double precision, and the pixel is one sum over its neighbours, in runs of four in a row. As many turns go one
way as the other: weights are made for the upper left quarter of the pixels, and serve the image's mirror images too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.cache import cached
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shares, together
from blemish.ops.filters import border_index
from blemish.ops.levels import truncated
from blemish.ops.splines import interpolating_map, spline_coefficients, spline_start, spline_weights
from blemish.ops.transfer import to_device

Turns = tuple[tuple[float, float], ...]
"""Angles and shares."""

# How many pixels' weights are worked out together.
_PIXELS = 4096
# How many numbers that takes at most without compiled kernels.
_NUMBERS = 2**22
# A turn touches four rows, and two runs in each at most.
_MOST_RUNS = 8
# So many images are worked on together, which stay in the processor's cache.
_IMAGES = 8
_LANES = 8  # eight at a time are worked on as fast as one


class Runs(NamedTuple):
    """Of consecutive pixels the runs of four neighbours: where the first lies, int32 (N,), and weights, float32 (N, 4).

    A pixel's runs begin at its entry of ``starts`` and end before the next.
    """

    starts: Tensor
    places: Tensor
    weights: Tensor
    most: int
    """How many a pixel has at most."""


class _Grid(NamedTuple):
    """The part of the coefficients that the upper left quarter of an image needs: which rows and columns."""

    rows: Tensor
    columns: Tensor

    @classmethod
    def of(cls, height: int, width: int, angle: float) -> _Grid:
        """For turns by this angle at most. Three more columns than are seen: runs may reach beyond."""
        sine = math.sin(min(angle, math.pi / 2))
        middle_row, middle_column = (height - 1) / 2, (width - 1) / 2
        rows = min(height, int(middle_row + sine * middle_column) + 2) + 3
        columns = min(width, int(middle_column + sine * middle_row) + 2) + 6
        return cls(border_index(-1, rows - 1, height, "reflect101"), border_index(-1, columns - 1, width, "reflect101"))


def _widest(turns: Turns) -> float:
    return max(abs(angle) for angle, _ in turns)


def turned_mean(levels: Tensor, turns: Turns) -> Tensor:
    """Levels (B, C, H, W) turned by all angles, each with its share, and added up, as levels; black comes from outside.

    Angles and shares are the same either way.
    """
    height, width = levels.shape[-2:]
    grid = _Grid.of(height, width, _widest(turns))
    quarter = ((height + 1) // 2) * ((width + 1) // 2)
    parts = [(first, min(first + _PIXELS, quarter)) for first in range(0, quarter, _PIXELS)]
    kernels = compiled("turns") if levels.device.type == "cpu" else None
    if kernels is None:
        return _plain(levels, turns, grid, parts)
    start = [(places.numpy(), powers, end) for places, powers, end in map(spline_start, (height, width))]
    out = torch.empty(levels.shape, dtype=torch.uint8)
    source, target = levels.contiguous().numpy(), out.numpy()

    def work(images: slice) -> None:
        planes = source[images].reshape(-1, height, width)
        changed = target[images].reshape(-1, height, width)
        lanes = 4 * len(planes)
        values = np.zeros((len(grid.rows), len(grid.columns), lanes + -lanes % _LANES), np.float32)
        kernels.coefficients(planes, grid.rows.numpy(), grid.columns.numpy(), *start, values)
        for first, stop in parts:  # which are many of a large image, and are not all kept
            runs = _runs(height, width, turns, first, stop, levels.device)
            kernels.turned_mean(values, first, *(part.numpy() for part in runs[:3]), changed)

    together([partial(work, images) for images in shares(len(levels), _IMAGES)])
    return out


def _plain(levels: Tensor, turns: Turns, grid: _Grid, parts: Sequence[tuple[int, int]]) -> Tensor:
    height, width = levels.shape[-2:]
    tall, wide = (height + 1) // 2, (width + 1) // 2
    whole = _coefficients(levels)
    rows, columns = (to_device(places, levels.device) for places in grid)
    mirrored = [(y, x) for y in (rows, height - 1 - rows) for x in (columns, width - 1 - columns)]
    values = torch.stack([whole[..., y, :][..., x].to(torch.float32) for y, x in mirrored]).flatten(-2)
    made = [_sums(values, _runs(height, width, turns, first, stop, levels.device)) for first, stop in parts]
    four = torch.cat(made, dim=-1).mul_(255).clamp_(0, 255)
    four = four.view(*four.shape[:-1], tall, wide)
    out = torch.empty_like(levels)
    # From the last to the first: a row or column in the middle is its own mirror image.
    out[..., height - tall :, width - wide :] = truncated(four[3].flip(-2, -1))
    out[..., height - tall :, :wide] = truncated(four[2].flip(-2))
    out[..., :tall, width - wide :] = truncated(four[1].flip(-1))
    out[..., :tall, :wide] = truncated(four[0])
    return out


def _coefficients(levels: Tensor) -> Tensor:
    """Coefficients of splines through levels as parts of 255, float64."""
    if levels.device.type != "cpu":
        down, across = (interpolating_map(size, levels.device) for size in levels.shape[-2:])
        return across.across(down.down(levels.to(torch.float64).div_(255)))
    values = levels.to(torch.float64).mul_(36 / 255).movedim(-1, 0)
    return spline_coefficients(spline_coefficients(values).movedim(-1, 0)).movedim((0, 1), (-2, -1))


def _sums(values: Tensor, runs: Runs) -> Tensor:
    """Sums over the neighbours of each pixel: values (…, rows · columns), (…, pixels)."""
    shape = values.shape[:-1]
    total = torch.zeros((*shape, len(runs.starts) - 1), dtype=torch.float32, device=values.device)
    bounds = runs.starts.to(torch.int64)
    starts, stops = bounds[:-1], bounds[1:]
    for number in range(runs.most):
        which = starts + number
        there = which < stops
        which = which.where(there, 0)
        place, weights = runs.places[which].to(torch.int64), runs.weights[which].where(there[:, None], 0).unbind(1)
        run = values.gather(-1, place.expand(*shape, -1)).mul_(weights[0])
        for step in (1, 2, 3):
            run.addcmul_(values.gather(-1, (place + step).expand(*shape, -1)), weights[step])
        total += run
    return total


@cached()
def _runs(height: int, width: int, turns: Turns, first: int, stop: int, device: torch.device) -> Runs:
    """The runs of some pixels of the upper left quarter of images of this size, counted row by row."""
    across = len(_Grid.of(height, width, _widest(turns)).columns)
    table = np.array([(math.cos(angle), math.sin(angle), share) for angle, share in turns])
    kernels = compiled("turns")
    if kernels is not None:
        most = (stop - first) * len(turns) * _MOST_RUNS
        room = np.empty(stop - first + 1, np.int32), np.empty(most, np.int32), np.empty((most, 4), np.float32)
        count = kernels.neighbours(height, width, first, table, across, *room)
        arrays: list[NDArray[Any]] = [room[0], room[1][:count].copy(), room[2][:count].copy()]
    else:
        side = 5 + math.ceil(2 * _widest(turns) * math.hypot(height, width) / 2)
        step = max(1, _NUMBERS // side**2)
        bounds = [*range(first, stop, step), stop]
        pieces = [_neighbours(height, width, table, across, *pair) for pair in pairwise(bounds)]
        counts, *rest = (np.concatenate(part) for part in zip(*pieces, strict=True))
        arrays = [np.concatenate([[0], counts.cumsum()]).astype(np.int32), *rest]
    starts, places, weights = (to_device(torch.from_numpy(array), device) for array in arrays)
    return Runs(starts, places, weights, int(np.diff(arrays[0]).max()))


def _neighbours(
    height: int, width: int, turns: NDArray[np.float64], across: int, first: int, stop: int
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """How many runs each pixel has, where they begin, and their weights."""
    number = np.arange(first, stop)[:, None]
    middle_row, middle_column = (height - 1) / 2, (width - 1) / 2
    down, right = number // ((width + 1) // 2) - middle_row, number % ((width + 1) // 2) - middle_column
    cos, sin, shares_of_turns = turns.T
    row = cos * down + sin * right + middle_row
    column = -sin * down + cos * right + middle_column
    inside = (row >= 0) & (row <= height - 1) & (column >= 0) & (column <= width - 1)
    y, x = row.astype(np.int64), column.astype(np.int64)
    down_weights, right_weights = (
        torch.stack(spline_weights(torch.from_numpy(place - place.astype(np.int64))), dim=-1).numpy()
        for place in (row, column)
    )
    shared = down_weights * shares_of_turns[:, None]
    # Each pixel's own window holds all its neighbours.
    top, left = (np.where(inside, place, height + width).min(1) for place in (y, x))
    y, x = (place[inside] - start.repeat(inside.sum(1)) for place, start in ((y, top), (x, left)))
    tall, wide = int(y.max()) + 4, int(x.max()) + 7
    pixel = inside.nonzero()[0]
    steps = np.arange(4)
    place = (((pixel * tall + y)[:, None] + steps) * wide)[:, :, None] + (x[:, None] + steps)[:, None]
    share = right_weights[inside][:, None, :] * shared[inside][:, :, None]
    lines, size = len(number) * tall, len(number) * tall * wide
    sums = np.bincount(place.ravel(), share.ravel(), size).reshape(lines, wide)
    seen = (np.bincount(place.ravel(), minlength=size) > 0).reshape(lines, wide)
    low = seen.argmax(1)
    runs = np.where(seen.any(1), -(-(wide - seen[:, ::-1].argmax(1) - low) // 4), 0)
    line = np.arange(lines).repeat(runs)
    begin = low[line] + 4 * (np.arange(len(line)) - (runs.cumsum() - runs).repeat(runs))
    weights = sums[line[:, None], begin[:, None] + steps].astype(np.float32)
    kept = (weights != 0).any(1)
    line, begin, weights = line[kept], begin[kept], weights[kept]
    pixel = line // tall
    places = ((top[pixel] + line % tall) * across + left[pixel] + begin).astype(np.int32)
    return np.bincount(pixel, minlength=len(number)), places, weights
