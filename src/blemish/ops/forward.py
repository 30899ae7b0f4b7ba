"""Where points and boxes of an image are after it was warped, from where the pixels of the result come from.

A continuous map is taken as linear on the triangles between the centres of neighbouring pixels, and half a pixel beyond
the outermost ones. For such a map results are exact, up to rounding. Coordinates are those of pixels' edges: the first
pixel is the square from 0 to 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blemish.ops.positions import Positions

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]

_SLACK = 1e-9

# Cells between pixels are looked through by square blocks of so many on a side.
_BLOCK = 16


class Forward:
    """One image's way from places in the original to places in the result."""

    def __init__(self, positions: Positions, image: int) -> None:
        x, y = (places[image].numpy().astype(np.float64) for places in (positions.x, positions.y))
        if positions.copies is not None:
            x[positions.copies[image].numpy()] = np.nan
        self._size = np.array([x.shape[1], x.shape[0]], dtype=np.float64)
        self._map: _Squares | _Mesh = _Squares(x, y) if positions.whole else _Mesh(x, y)

    def point(self, point: Floats) -> Floats | None:
        """Where a point (x, y) is; None where it is not shown. Of several places the one nearest to where it was."""
        if not ((point >= 0) & (point <= self._size)).all():
            return None
        places = self._map.targets_of(point - 0.5) + 0.5
        if len(places) == 0:
            return None
        nearest: Floats = places[np.square(places - point).sum(1).argmin()]
        return nearest

    def box(self, box: Floats) -> Floats | None:
        """The smallest box (left, top, right, bottom) around all that is shown of one; None where that is nothing."""
        low, high = (np.clip(corner, 0, self._size) - 0.5 for corner in (box[:2], box[2:]))
        if not (high > low).all():
            return None
        shown = self._map.extremes(low, high)
        if len(shown) == 0:
            return None
        first, last = shown.min(0), shown.max(0)
        return np.concatenate([first, last]) + 0.5 if (last - first > _SLACK).all() else None


class _Squares:
    """Pixels that are whole ones of the original, each wherever it comes from."""

    def __init__(self, x: Floats, y: Floats) -> None:
        rows, columns = np.nonzero(~(np.isnan(x) | np.isnan(y)))
        self._last = np.array([x.shape[1] - 1, x.shape[0] - 1])
        self._source = np.rint(x[rows, columns]), np.rint(y[rows, columns])
        self._target = columns.astype(np.float64), rows.astype(np.float64)

    def targets_of(self, point: Floats) -> Floats:
        """All places of a point, (N, 2); it and they are counted from the first pixel's centre."""
        pixel = np.minimum(np.floor(point + 0.5), self._last)
        same = (self._source[0] == pixel[0]) & (self._source[1] == pixel[1])
        places: Floats = np.stack([axis[same] for axis in self._target], axis=1) + (point - pixel)
        return places

    def extremes(self, low: Floats, high: Floats) -> Floats:
        """Points of the result, among them the outermost ones, that show something of a box."""
        (x, y), (left, top), (right, bottom) = self._source, low - 0.5, high + 0.5
        some = (x > left) & (x < right) & (y > top) & (y < bottom)
        source, target = (np.stack([axis[some] for axis in axes], axis=1) for axes in (self._source, self._target))
        start, end = np.maximum(source - 0.5, low), np.minimum(source + 0.5, high)
        corners: Floats = np.concatenate([start, end]) + np.tile(target - source, (2, 1))
        return corners


class _Triangles(NamedTuple):
    """Corners of triangles, (N, 3, 2): in the original, and in the result."""

    source: Floats
    target: Floats


class _Mesh:
    """The cells between the centres of pixels, two triangles each, of which none has an unknown corner."""

    def __init__(self, x: Floats, y: Floats) -> None:
        self._nodes = np.stack([_extended(x), _extended(y)], axis=-1)
        self._nodes[np.isnan(self._nodes).any(-1)] = np.nan
        height, width = x.shape
        self._columns, self._rows = (np.array([-0.5, *range(n), n - 0.5]) for n in (width, height))
        corners = [self._nodes[i : height + 1 + i, j : width + 1 + j] for i in (0, 1) for j in (0, 1)]
        self._low, self._high = (_blocks(reduce(corners)) for reduce in (np.fmin.reduce, np.fmax.reduce))
        known: Truths = np.logical_and.reduce([~np.isnan(corner[..., :1]) for corner in corners])
        self._whole = _blocks(known)[..., 0].astype(bool)
        self._along = -(-(width + 1) // _BLOCK)
        self._block_low, self._block_high = np.fmin.reduce(self._low, 1), np.fmax.reduce(self._high, 1)
        self._block_whole = self._whole.all(1)

    def targets_of(self, point: Floats) -> Floats:
        """All places of a point, (N, 2); it and they are counted from the first pixel's centre."""
        block = np.nonzero(_meets(self._block_low, self._block_high, point, point))[0]
        inside = _meets(self._low[block], self._high[block], point, point)
        source, target = self._triangles(*self._cells(block, inside))
        first, *others = source.transpose(1, 0, 2)
        u, v, w = others[0] - first, others[1] - first, point - first
        area = _cross(u, v)
        flat = area == 0
        safe = np.where(flat, 1.0, area)
        shares = np.stack([_cross(w, v) / safe, _cross(u, w) / safe], axis=1)
        hit = (shares >= -_SLACK).all(1) & (shares.sum(1) <= 1 + _SLACK) & ~flat
        weights = np.concatenate([1 - shares.sum(1, keepdims=True), shares], axis=1)[hit]
        places: Floats = (weights[..., None] * target[hit]).sum(1)
        return places

    def extremes(self, low: Floats, high: Floats) -> Floats:
        """Points of the result, among them the outermost ones, that show something of a box."""
        meets = _meets(self._block_low, self._block_high, low, high)
        within = meets & self._block_whole & _lies(self._block_low, self._block_high, low, high)
        points = [self._corners(*self._cells(np.nonzero(within)[0], np.ones((int(within.sum()), _BLOCK**2), bool)))]
        block = np.nonzero(meets & ~within)[0]
        cell_low, cell_high = self._low[block], self._high[block]
        inside = self._whole[block] & _lies(cell_low, cell_high, low, high)
        points.append(self._corners(*self._cells(block, inside)))
        partly = _meets(cell_low, cell_high, low, high) & ~inside
        points.append(_clipped(*self._triangles(*self._cells(block, partly)), low, high))
        points += [self.targets_of(np.array([x, y])) for x in (low[0], high[0]) for y in (low[1], high[1])]
        return np.concatenate(points)

    def _cells(self, block: NDArray[np.int64], chosen: Truths) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows and columns of the chosen cells of blocks, (blocks, cells of one)."""
        number, cell = np.nonzero(chosen)
        row = block[number] // self._along * _BLOCK + cell // _BLOCK
        column = block[number] % self._along * _BLOCK + cell % _BLOCK
        real = (row < len(self._rows) - 1) & (column < len(self._columns) - 1)
        return row[real], column[real]

    def _corners(self, row: NDArray[np.int64], column: NDArray[np.int64]) -> Floats:
        """The outermost corners of cells in the result."""
        if len(row) == 0:
            return np.empty((0, 2))
        (top, bottom), (left, right) = ((part.min(), part.max() + 1) for part in (row, column))
        return np.array([[self._columns[left], self._rows[top]], [self._columns[right], self._rows[bottom]]])

    def _triangles(self, row: NDArray[np.int64], column: NDArray[np.int64]) -> _Triangles:
        sources, targets = [], []
        for half in (((0, 0), (0, 1), (1, 0)), ((0, 1), (1, 1), (1, 0))):
            sources.append(np.stack([self._nodes[row + i, column + j] for i, j in half], axis=1))
            places = [np.stack([self._columns[column + j], self._rows[row + i]], axis=1) for i, j in half]
            targets.append(np.stack(places, axis=1))
        source, target = np.concatenate(sources), np.concatenate(targets)
        known = ~np.isnan(source).any((1, 2))
        return _Triangles(source[known], target[known])


def _extended(places: Floats) -> Floats:
    """Places of pixels, and those half a pixel further out at the borders."""
    for axis in (0, 1):
        first, second, before, last = (places.take([row], axis=axis) for row in (0, 1, -2, -1))
        places = np.concatenate([1.5 * first - 0.5 * second, places, 1.5 * last - 0.5 * before], axis=axis)
    return places


def _blocks(cells: NDArray[np.generic]) -> Floats:
    """Values of cells (H, W, n) by blocks, (blocks, cells of one, n); those that complete the last blocks are NaN."""
    height, width, count = cells.shape
    down, right = -(-height // _BLOCK), -(-width // _BLOCK)
    padded = np.full((down * _BLOCK, right * _BLOCK, count), np.nan if cells.dtype != np.bool_ else 1.0)
    padded[:height, :width] = cells
    split = padded.reshape(down, _BLOCK, right, _BLOCK, count).transpose(0, 2, 1, 3, 4)
    return split.reshape(down * right, _BLOCK**2, count)


def _meets(first: Floats, last: Floats, low: Floats, high: Floats) -> Truths:
    """Whether bounds (…, 2) have something in common with a box."""
    across = (first[..., 0] <= high[0] + _SLACK) & (last[..., 0] >= low[0] - _SLACK)
    met: Truths = across & (first[..., 1] <= high[1] + _SLACK) & (last[..., 1] >= low[1] - _SLACK)
    return met


def _lies(first: Floats, last: Floats, low: Floats, high: Floats) -> Truths:
    """Whether bounds (…, 2) lie in a box."""
    across = (first[..., 0] >= low[0]) & (last[..., 0] <= high[0])
    lying: Truths = across & (first[..., 1] >= low[1]) & (last[..., 1] <= high[1])
    return lying


def _cross(first: Floats, second: Floats) -> Floats:
    crossed: Floats = first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
    return crossed


def _clipped(source: Floats, target: Floats, low: Floats, high: Floats) -> Floats:
    """Both ends of the part of each side of triangles that lies in a box, in the result."""
    start, end = (part.reshape(-1, 2) for part in (source, np.roll(source, -1, axis=1)))
    way = end - start
    still = way == 0
    safe = np.where(still, 1.0, way)
    reach = (low - start) / safe, (high - start) / safe
    within = (start >= low) & (start <= high)
    enter = np.where(still, np.where(within, 0.0, np.inf), np.minimum(*reach)).max(1).clip(min=0)
    leave = np.where(still, np.where(within, 1.0, -np.inf), np.maximum(*reach)).min(1).clip(max=1)
    some = enter <= leave
    first, last = (part.reshape(-1, 2)[some] for part in (target, np.roll(target, -1, axis=1)))
    return np.concatenate([first + share[some, None] * (last - first) for share in (enter, leave)])
