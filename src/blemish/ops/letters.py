"""A small stroke font of our own: the letters a to z as anti-aliased pixels, at any size and fraction of a pixel."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.cache import cached

# Strokes of each letter in units of 1/22 of the height of capitals: x to the right, y up from the baseline.
_STROKES = {
    "a": "2,13 7,14 14,13 14,0/14,8 6,8 2,5 2,2 6,0 14,3",
    "b": "3,22 3,0/3,11 8,14 14,12 16,7 14,2 8,0 3,3",
    "c": "14,12 9,14 4,12 2,7 4,2 9,0 14,2",
    "d": "16,22 16,0/16,11 11,14 5,12 3,7 5,2 11,0 16,3",
    "e": "2,7 15,7 14,12 9,14 4,12 2,7 4,2 9,0 14,2",
    "f": "12,21 8,21 6,18 6,0/2,13 11,13",
    "g": "16,14 16,-4 12,-7 5,-6/16,11 11,14 5,12 3,7 5,2 11,0 16,3",
    "h": "3,22 3,0/3,10 8,14 13,13 15,10 15,0",
    "i": "4,14 4,0/4,19 4,20",
    "j": "5,14 5,-4 2,-7/5,19 5,20",
    "k": "3,22 3,0/14,14 3,5/7,8 15,0",
    "l": "4,22 4,0",
    "m": "3,14 3,0/3,10 7,14 11,14 14,10 14,0/14,10 18,14 23,14 26,10 26,0",
    "n": "3,14 3,0/3,10 8,14 13,13 15,10 15,0",
    "o": "9,14 4,12 2,7 4,2 9,0 14,2 16,7 14,12 9,14",
    "p": "3,14 3,-7/3,11 8,14 14,12 16,7 14,2 8,0 3,3",
    "q": "16,14 16,-7/16,11 11,14 5,12 3,7 5,2 11,0 16,3",
    "r": "3,14 3,0/3,8 6,13 12,14",
    "s": "13,12 8,14 3,12 4,8 12,6 13,2 8,0 2,2",
    "t": "5,20 5,3 8,0 10,0/1,14 10,14",
    "u": "3,14 3,4 6,0 10,0 15,4/15,14 15,0",
    "v": "1,14 8,0 14,14",
    "w": "2,14 7,0 12,14 17,0 22,14",
    "x": "3,14 15,0/15,14 3,0",
    "y": "1,14 8,0/14,14 8,0 5,-6 2,-7",
    "z": "3,14 14,14 3,0 15,0",
}

ADVANCES = (20, 20, 18, 20, 18, 14, 20, 20, 9, 9, 19, 9, 31, 20, 19, 20, 20, 14, 17, 11, 20, 16, 24, 18, 16, 18)
"""How far the next letter is, in the same units, a to z: as in the plain fonts of plotters."""

PHASES = 4
"""To which fraction of a pixel letters are placed."""

# Strokes are a little wider than a pixel and fade within one.
_HALF_WIDTH = 0.65
_HIGHEST, _LOWEST, _WIDEST = 22, -7, 26


class LetterTable(NamedTuple):
    """The ink 0 … 1 of every size, letter and phase in turn, (M, P), and where its pixels lie from the pen, (P,)."""

    ink: Tensor
    down: Tensor
    right: Tensor


@cached(mebibytes=64)
def letter_table(sizes: tuple[float, ...], device: str) -> LetterTable:
    """All letters at some sizes, in pixels per unit."""
    most = max(sizes)
    rows = np.arange(-math.ceil(_HIGHEST * most) - 1, math.ceil(-_LOWEST * most) + 2)
    columns = np.arange(-1, math.ceil(_WIDEST * most) + 3)
    y, x = (grid.ravel() for grid in np.meshgrid(rows, columns, indexing="ij"))
    ink = [
        _ink(strokes, size, (x - (phase + 0.5) / PHASES).astype(np.float64), -y.astype(np.float64))
        for size in sizes
        for strokes in _STROKES.values()
        for phase in range(PHASES)
    ]
    table = torch.from_numpy(np.stack(ink).astype(np.float32))
    return LetterTable(*(values.to(device) for values in (table, torch.from_numpy(y), torch.from_numpy(x))))


def _ink(strokes: str, size: float, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much of each pixel a letter covers, from its distance to the nearest stroke."""
    nearest = np.full(x.shape, np.inf)
    for stroke in strokes.split("/"):
        points = np.array([[float(value) for value in point.split(",")] for point in stroke.split()]) * size
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            length = (x1 - x0) ** 2 + (y1 - y0) ** 2
            along = np.clip(((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length, 0, 1)
            nearest = np.minimum(nearest, np.hypot(x - x0 - along * (x1 - x0), y - y0 - along * (y1 - y0)))
    covered: NDArray[np.float64] = np.clip(_HALF_WIDTH + 0.5 - nearest, 0, 1)
    return covered
