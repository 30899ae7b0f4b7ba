"""Which pixels small shapes cover when they are drawn without anti-aliasing, by the rules of Pillow 13.

Masks are made once, in NumPy; `pixel_table` lists their pixels, so that thousands of shapes are drawn by look-ups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Mask = NDArray[np.bool_]

# Farther than any image reaches.
_NOWHERE = 2**15 - 1


def polygon_masks(vertices: NDArray[np.int64], reach: int) -> Mask:
    """Filled polygons (N, K, 2) with whole (x, y) as masks (N, 2 · reach + 1, 2 · reach + 1) around (0, 0)."""
    x0, y0 = (vertices[..., axis, None].astype(np.float32) for axis in (0, 1))
    x1, y1 = (np.roll(values, -1, axis=1) for values in (x0, y0))
    rows = np.arange(-reach, reach + 1, dtype=np.float32)
    low, high, flat = np.minimum(y0, y1), np.maximum(y0, y1), y0 == y1
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = (rows - y0) * ((x1 - x0) / (y1 - y0)) + x0
    met = (low <= rows) & (rows <= high) & ~flat
    # Where an edge ends, its crossing counts twice, so that the next edge opens a new span; but for the last row.
    twice = met & (rows == high) & (rows != y0.max(1, keepdims=True))
    crossings = np.concatenate([np.where(met, crossing, np.inf), np.where(twice, crossing, np.inf)], axis=1)
    edges = np.sort(crossings.transpose(0, 2, 1), axis=2)
    first, last = np.floor(edges[..., ::2] + np.float32(0.5)), np.ceil(edges[..., 1::2] - np.float32(0.5))
    last = np.where(np.isinf(last), -np.inf, last)
    spans = (first[..., None] <= rows) & (rows <= last[..., None])
    left, right = np.minimum(x0, x1), np.maximum(x0, x1)
    level = (flat & (y0 == rows))[..., None] & ((left <= rows) & (rows <= right))[:, :, None, :]
    filled: Mask = spans.any(axis=2) | level.any(axis=1)
    return filled


def disc_mask(side: int) -> Mask:
    """A disc in a box that is ``side`` + 1 pixels wide and high."""
    half: dict[int, int] = {}
    x, y = side, side % 2
    while True:
        half.setdefault(y, x)
        if x == side % 2 and y == side:
            break
        steps = [(x, y + 2), (x - 2, y + 2), (x - 2, y)] if x > 1 else [(x, y + 2)]
        x, y = min(steps, key=lambda step: abs(step[0] ** 2 + step[1] ** 2 - side**2))
    doubled = np.arange(-side, side + 1, 2)
    widths = np.array([half.get(abs(int(row)), -1) for row in doubled])
    return np.abs(doubled)[None, :] <= widths[:, None]


class PixelTable(NamedTuple):
    """The pixels of each of M masks, (M, P) int64 each, relative to the mask's origin; spare entries lie far away."""

    down: Tensor
    right: Tensor


def pixel_table(masks: Sequence[tuple[Mask, int]], device: torch.device) -> PixelTable:
    """The pixels of masks, each given with the row, which is also the column, of its origin."""
    most = max(int(mask.sum()) for mask, _ in masks)
    down = np.full((len(masks), most), _NOWHERE, dtype=np.int64)
    right = np.zeros_like(down)
    for number, (mask, origin) in enumerate(masks):
        y, x = np.nonzero(mask)
        down[number, : len(y)], right[number, : len(x)] = y - origin, x - origin
    return PixelTable(torch.from_numpy(down).to(device), torch.from_numpy(right).to(device))


def star_masks(size: int) -> tuple[Mask, int]:
    """Five-pointed stars around their centre, one for each degree of rotation, and where the centre stands.

    Corners are cut to whole pixels downwards; a star's outer corners are size / 1.2 from its centre.
    """
    corner = np.arange(10)
    angle = np.deg2rad(36 * corner + np.arange(360)[:, None])
    radius = size / 1.2 * np.where(corner % 2 == 0, 1, 0.5)
    corners = np.floor(np.stack([radius * np.sin(angle), radius * np.cos(angle)], axis=-1)).astype(np.int64)
    reach = math.ceil(size / 1.2) + 1
    return polygon_masks(corners, reach), reach
