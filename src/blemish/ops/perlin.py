"""Gradient noise after Perlin (1985), with gradients and their places given for each image."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.transfer import to_device

TABLE = 256
"""The number of gradients; the pattern repeats after so many cells."""


def turbulence(gradients: Tensor, places: Tensor, height: int, width: int, *, cell: float, octaves: int) -> Tensor:
    """The sum over octaves f = 1, 2, 4, … of |noise at f times the frequency| / f, float64 (B, 1, H, W).

    `gradients` (B, 256, 2), down and right, and `places` (B, 256), a permutation of their numbers, live on the device.
    `cell` is the side of the cells of the first octave in pixels.
    """
    total = torch.zeros((len(places), 1, height, width), dtype=torch.float64, device=places.device)
    kernels = compiled("patterns") if places.device.type == "cpu" else None
    for octave in range(octaves):
        frequency = 2**octave
        if kernels is not None:
            side = cell / frequency
            sides = [_cells(size, side, places.device) for size in (height, width)]
            settings = [values.numpy() for pair in sides for values in pair]
            corners = _corners(gradients, places, *(math.ceil(size / side) + 1 for size in (height, width)))
            shared_out(kernels.gradient_noise, [total[:, 0], *corners], *settings, frequency)
            continue
        total += _noise(gradients, places, height, width, cell / frequency).abs_().div_(frequency)
    return total


def _noise(gradients: Tensor, places: Tensor, height: int, width: int, cell: float) -> Tensor:
    """Gradient noise with cells of this side, about −1 … 1."""
    device = places.device
    (row, down), (column, across) = (_cells(size, cell, device) for size in (height, width))
    corners = _corners(gradients, places, *(math.ceil(size / cell) + 1 for size in (height, width)))
    bend_down, bend_across = (_bend(t)[..., None] for t in (down, across))
    down = down[:, None]
    sides = []
    for right in (0, 1):
        # Cells are few: gradients stand at their corners, and only then are spread over the pixels, rows last.
        pair = [part.index_select(2, column + right) for part in corners]
        upper, lower = (
            pair[0].index_select(1, row + below) * (down - below)
            + pair[1].index_select(1, row + below) * (across - right)
            for below in (0, 1)
        )
        sides.append(upper + bend_down * (lower - upper))
    left, right_side = sides
    return (left + bend_across[:, 0] * (right_side - left)).mul_(1.5).unsqueeze_(1)


def _cells(size: int, cell: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """For the pixels along a side the number of their cell, and how far into it they lie."""
    position = torch.arange(size, dtype=torch.float64) / cell
    number = position.floor()
    return to_device(number, device, torch.int64), to_device(position - number, device)


def _corners(gradients: Tensor, places: Tensor, rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """The gradients, down and right, at the corners of so many cells, (B, rows, columns) each."""
    device = places.device
    row, column = (torch.arange(n, device=device) % TABLE for n in (rows, columns))
    number = (places[:, row, None] + column) % TABLE
    number = places.gather(1, number.flatten(1))
    down, right = (part.gather(1, number).view(-1, rows, columns) for part in gradients.unbind(2))
    return down, right


def _bend(t: Tensor) -> Tensor:
    return t * t * (3 - 2 * t)
