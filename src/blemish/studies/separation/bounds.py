"""Short vectors whose distances never exceed the distances of the points they stand for.

A pair can be left out without looking at its thousands of coordinates once a lower bound says that it is too far apart.

- L_∞: some coordinates alone, chosen greedily on a sample: each the one whose variance the ones before explain least.
  Neighbouring pixels say nearly the same, so twelve such pixels leave 1 in 1,000 pairs of CIFAR-10.
- L_2: principal components of a sample; a projection never lengthens a difference.
- L_1: sums over blocks, |Σ_B x − Σ_B y| ≤ Σ_B |x − y|; for images the blocks are tiles of a channel.

Bounds of uint8 data in L_∞ are integers and exact. All others are float32, less all that rounding could have added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.balls import Norm

_SAMPLE_BYTES = 1 << 25
_CHUNK_VALUES = 1 << 22
_STORED_VALUES = 1 << 25
_UNIT = 2.0**-24  # of float32
_POWERS = {"l1": 1.0, "l2": 2.0, "linf": float("inf")}
_CHANNELS = (1, 3, 4)


@dataclass(frozen=True)
class Bound:
    """One short vector per point, and lower bounds of distances from them."""

    values: Tensor
    norm: Norm
    slack: float
    """What rounding of the stored values can add to a distance."""

    @classmethod
    def of(cls, values: NDArray[Any], norm: Norm, device: torch.device) -> Bound:
        """The bound from exact uint8 coordinates, or from values that were rounded to float32."""
        if values.dtype == np.uint8:
            return cls(torch.from_numpy(values).to(device), norm, 0.0)
        count = {"l1": values.shape[1], "l2": np.sqrt(values.shape[1]), "linf": 1}[norm]
        largest = max(float(np.abs(values).max(initial=0.0)), 1e-30)
        return cls(torch.from_numpy(values).to(device), norm, 4 * _UNIT * largest * float(count))

    def dense(self, a: Tensor | slice, b: Tensor | slice) -> Tensor:
        """Lower bounds between all of ``a`` and all of ``b``; uint8 where the values are."""
        first, second = self.values[a], self.values[b]
        if self.values.dtype == torch.uint8:
            return _largest_difference(first.T.contiguous(), second.T.contiguous())
        mode = "donot_use_mm_for_euclid_dist"  # the other way cancels
        return self._lowered(torch.cdist(first, second, p=_POWERS[self.norm], compute_mode=mode))

    def paired(self, i: Tensor, j: Tensor) -> Tensor:
        """Lower bounds of the pairs (i[n], j[n])."""
        first, second = self.values[i], self.values[j]
        if self.values.dtype == torch.uint8:
            return (torch.maximum(first, second) - torch.minimum(first, second)).amax(1)
        return self._lowered(torch.linalg.vector_norm(first - second, ord=_POWERS[self.norm], dim=1))

    def _lowered(self, distance: Tensor) -> Tensor:
        relative = 1 - (self.values.shape[1] + 4) * 2 * _UNIT
        return distance.mul_(relative).sub_(self.slack)

    def gaps(self, low: Tensor, high: Tensor, lows: Tensor, highs: Tensor) -> NDArray[np.float64]:
        """Lower bounds between everything in one box and everything in each of many."""
        apart = torch.maximum(lows.double() - high.double(), low.double() - highs.double()).clamp_(min=0)
        norms = torch.linalg.vector_norm(apart, ord=_POWERS[self.norm], dim=1)
        return np.asarray((norms * (1 - 1e-12) - self.slack).cpu().numpy())


def _largest_difference(first: Tensor, second: Tensor) -> Tensor:
    """Chebyshev distances of uint8 columns, one coordinate at a time: faster than any broadcast over all."""
    shape = (first.shape[1], second.shape[1])
    result = torch.zeros(shape, dtype=torch.uint8, device=first.device)
    upper, lower = torch.empty_like(result), torch.empty_like(result)
    for x, y in zip(first, second, strict=True):
        torch.maximum(x[:, None], y[None], out=upper)
        torch.minimum(x[:, None], y[None], out=lower)
        torch.maximum(result, upper.sub_(lower), out=result)
    return result


def short_vectors(points: NDArray[Any], norm: Norm) -> list[NDArray[Any]]:
    """Short vectors for all pairs, then longer ones for the pairs that are left; one array where it says all."""
    flat = points.reshape(len(points), -1)
    size = flat.shape[1]
    lengths = {"l1": (27, 75, 243), "l2": (16, 96), "linf": (12, 28, 96)}[norm]
    if size <= (lengths[0] if norm == "linf" else 16):
        return [_centred(flat)]
    most = max(2 * lengths[0], _STORED_VALUES // len(flat))
    lengths = tuple(sorted({min(length, most, size) for length in lengths}))
    if norm == "l1":
        return [_block_sums(points, length) for length in lengths]
    sample = _sample(flat)
    if norm == "l2":
        projected = _project(flat, sample.mean(0), _principal_axes(sample, lengths[-1]))
        return [projected[:, :length] for length in lengths]
    chosen = _telling_coordinates(sample, lengths[-1])
    return [_columns(flat, part) for part in np.split(chosen, lengths[:-1])]


def _rows(flat: NDArray[Any]) -> Iterator[slice]:
    step = max(1, _CHUNK_VALUES // max(1, int(np.prod(flat.shape[1:]))))
    return (slice(start, start + step) for start in range(0, len(flat), step))


def _centred(flat: NDArray[Any]) -> NDArray[np.float32]:
    values = flat.astype(np.float64)
    return np.asarray(values - values.mean(0), dtype=np.float32)


def _sample(flat: NDArray[Any]) -> NDArray[np.float32]:
    """Up to 1,500 points, evenly spread over the data: a pruning choice, so no randomness is needed."""
    count = min(len(flat), 1500, max(64, _SAMPLE_BYTES // (4 * flat.shape[1])))
    rows = np.linspace(0, len(flat) - 1, count).astype(np.int64)
    return np.asarray(flat[rows], dtype=np.float32)


def _telling_coordinates(sample: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Coordinates chosen greedily by the variance that is left: a pivoted Cholesky factorisation."""
    rest = sample - sample.mean(0)
    chosen: list[int] = []
    free = np.ones(rest.shape[1], dtype=bool)
    for _ in range(count):
        variance = np.where(free, np.einsum("ij,ij->j", rest, rest), -1.0)
        best = int(variance.argmax())
        chosen.append(best)
        free[best] = False
        if variance[best] > 0:
            direction = rest[:, best] / np.sqrt(variance[best])
            rest -= np.outer(direction, direction @ rest)
    return np.array(chosen)


def _columns(flat: NDArray[Any], chosen: NDArray[np.int64]) -> NDArray[Any]:
    result = np.empty((len(flat), len(chosen)), np.uint8 if flat.dtype == np.uint8 else np.float32)
    for rows in _rows(flat):  # a mapped file is read once, in order
        result[rows] = flat[rows][:, chosen]
    return result


def _principal_axes(sample: NDArray[np.float32], count: int) -> NDArray[np.float64]:
    """Orthonormal rows near the first principal components; one step of subspace iteration is near enough."""
    centred = sample - sample.mean(0)
    start = np.random.default_rng(0).standard_normal((len(centred), min(count + 8, len(centred)))).astype(np.float32)
    for _ in range(2):
        basis = np.linalg.qr(centred.T @ start)[0]
        start = centred @ basis
    turn = np.linalg.svd(start, full_matrices=False)[2]
    axes = basis.astype(np.float64) @ turn.T.astype(np.float64)
    return np.ascontiguousarray(np.linalg.qr(axes)[0].T[:count])


def _project(flat: NDArray[Any], centre: NDArray[Any], axes: NDArray[np.float64]) -> NDArray[np.float32]:
    result = np.empty((len(flat), len(axes)), np.float32)
    for rows in _rows(flat):
        result[rows] = (flat[rows].astype(np.float64) - centre) @ axes.T
    return result


def _block_sums(points: NDArray[Any], count: int) -> NDArray[np.float32]:
    """Sums over about ``count`` blocks: tiles per channel of (N, H, W[, C]) or (N, C, H, W), else runs of values."""
    if points.ndim == 3 or (points.ndim == 4 and {points.shape[1], points.shape[3]} & set(_CHANNELS)):
        channel = None if points.ndim == 3 else (3 if points.shape[3] in _CHANNELS else 1)
        side = int(np.sqrt(count / (1 if channel is None else points.shape[channel])))
        parts = [points.shape[axis] if axis == channel else side for axis in range(1, points.ndim)]
    else:
        points, parts = points.reshape(len(points), -1), [count]
    sums: list[NDArray[np.float32]] = []
    centre: NDArray[np.float64] | None = None
    for rows in _rows(points):
        chunk = points[rows].astype(np.float64)
        for axis, pieces in enumerate(parts, start=1):
            starts = np.unique(np.linspace(0, chunk.shape[axis], pieces, endpoint=False).astype(np.int64))
            chunk = np.add.reduceat(chunk, starts, axis=axis)
        flat = chunk.reshape(len(chunk), -1)
        centre = flat.mean(0) if centre is None else centre
        sums.append((flat - centre).astype(np.float32))
    return np.concatenate(sums)
