"""Blurs with a disk, as of a lens out of focus: sums over classes of neighbours that have one weight.

The sum of a class is a whole number, so that neither its order nor the size of a batch can change it; then each class
adds its product with one rounding. A GPU takes an FFT, whose result may lie on the other side of a level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.filters import border_index, convolve, pad
from blemish.ops.transfer import to_device

# The largest reach in any table of severities, for all of them.
_REACH = 12

# The sum of so many levels fits in 16 bits.
_MOST_TAPS = 257

Lens = tuple[float, float]
"""The radius of a disk, and the standard deviation of the Gaussian that smooths it."""


@lru_cache(maxsize=64)
def _disk(radius: float, alias_blur: float) -> Tensor:
    """A disk smoothed by a small Gaussian. Its grid is 17×17 up to radius 8 and follows the radius beyond.

    A fractional radius above 8 gives the reference an even grid that starts at −radius; so do we.
    """
    start, taps = (-8.0, 3) if radius <= 8 else (-radius, 5)
    axis = start + np.arange(17 if radius <= 8 else math.ceil(2 * radius + 1))
    disk = torch.from_numpy((axis[:, None] ** 2 + axis**2 <= radius**2).astype(np.float64))
    distance = torch.arange(taps, dtype=torch.float64) - taps // 2
    smooth = torch.exp(-(distance**2) / (2 * alias_blur**2))
    size, reach = len(axis), taps // 2
    index = border_index(-reach, size + reach, size, "reflect101")
    windows = (disk / disk.sum())[index][:, index].unfold(0, taps, 1).unfold(1, taps, 1)
    return torch.einsum("yxij,i,j->yx", windows, smooth / smooth.sum(), smooth / smooth.sum())


class _Classes(NamedTuple):
    """Taps (row, column) from the corner of the largest kernel, those of class i from starts[i] on, and weights."""

    taps: NDArray[np.int64]
    starts: NDArray[np.int64]
    weights: NDArray[np.float32]


@lru_cache(maxsize=64)
def _classes(lens: Lens) -> _Classes:
    disk = _disk(*lens).numpy().astype(np.float32)
    corner, middle = _REACH - len(disk) // 2, (len(disk) - 1) / 2
    taps, starts, weights = [], [0], []
    for weight in np.unique(disk[disk > 0]):
        places = np.argwhere(disk == weight)
        places = places[np.argsort(abs(places[:, 0] - middle), kind="stable")]  # rows that mirror each other together
        for first in range(0, len(places), _MOST_TAPS):
            taps.append(places[first : first + _MOST_TAPS] + corner)
            starts.append(starts[-1] + len(taps[-1]))
            weights.append(weight)
    return _Classes(np.concatenate(taps), np.array(starts), np.array(weights, dtype=np.float32))


@lru_cache(maxsize=64)
def _paired(lens: Lens) -> tuple[NDArray[np.int64], _Classes]:
    """Pairs of rows that have the same taps, or a row and −1; and classes whose taps are (number of a pair, column)."""
    classes = _classes(lens)
    owner = np.repeat(np.arange(len(classes.weights)), np.diff(classes.starts))
    single: dict[tuple[tuple[int, int], ...], int] = {}
    pairs: list[tuple[int, int]] = []
    entries: list[tuple[int, int, int]] = []
    for row in np.unique(classes.taps[:, 0]).tolist():
        here = classes.taps[:, 0] == row
        own = tuple(sorted(zip(owner[here].tolist(), classes.taps[here, 1].tolist(), strict=True)))
        if own in single:
            pair = single.pop(own)
            pairs[pair] = (pairs[pair][0], row)
        else:
            single[own] = len(pairs)
            entries += [(number, len(pairs), column) for number, column in own]
            pairs.append((row, -1))
    entries.sort()
    numbers = [number for number, _, _ in entries]
    starts = np.searchsorted(numbers, np.arange(len(classes.weights) + 1)).astype(np.int64)
    taps = np.array([pair[1:] for pair in entries], dtype=np.int64)
    return np.array(pairs, dtype=np.int64), _Classes(taps, starts, classes.weights)


def disk_blur(images: Tensor, lenses: Sequence[Lens]) -> Tensor:
    """Blur each image, grey levels in [0, 1], with its own disk; the border mirrors without its edge."""
    if images.device.type != "cpu":
        return _by_fft(images, lenses)
    padded = pad((images * 255).round_(), *(_REACH,) * 4, "reflect101").to(torch.int16).numpy().view(np.uint16)
    height, width = images.shape[-2:]
    out = torch.zeros_like(images)
    # One image at a time: what is added up should stay in the cache.
    for source, total, lens in zip(padded, out, lenses, strict=True):
        pairs, classes = _paired(lens)
        rows = [source[:, first : first + height] for first, _ in pairs]
        for pair, (_, second) in enumerate(pairs):
            if second >= 0:
                rows[pair] = rows[pair] + source[:, second : second + height]
        for number, weight in enumerate(classes.weights.tolist()):
            taps = classes.taps[classes.starts[number] : classes.starts[number + 1]]
            count = np.zeros(total.shape, np.uint16)
            for pair, right in taps:
                count += rows[pair][..., right : right + width]
            total.add_(torch.from_numpy(count.astype(np.float32)), alpha=weight)
    return out.mul_(1 / 255)


def _by_fft(images: Tensor, lenses: Sequence[Lens]) -> Tensor:
    distinct, inverse = np.unique(np.array(lenses), axis=0, return_inverse=True)
    kernels = torch.zeros(len(distinct), 2 * _REACH + 1, 2 * _REACH + 1, dtype=torch.float32)
    for kernel, lens in zip(kernels, distinct.tolist(), strict=True):
        disk = _disk(*lens)
        start = _REACH - len(disk) // 2
        kernel[start : start + len(disk), start : start + len(disk)] = disk
    return convolve(images, kernels, (_REACH, _REACH), "reflect101", which=torch.from_numpy(inverse.ravel()))


def disk_levels(kernels: Any, levels: Any, out: Any, lenses: Sequence[Lens]) -> None:
    """The same from levels to levels by the kernels of `blemish.ops.compiled.blurs`, or by fused ones."""
    margins = [_margins(size) for size in levels.shape[-2:]]
    for lens in set(lenses):
        members = [i for i, own in enumerate(lenses) if own == lens]
        whole = len(members) == len(levels)
        index = to_device(torch.tensor(members), levels.device) if isinstance(levels, Tensor) else members
        source, made = (levels, out) if whole else (levels[index], out[index])
        pairs, classes = _paired(lens)
        kernels.weighted_classes(source, made, *margins, pairs, *classes)
        if not whole:
            out[index] = made


@lru_cache(maxsize=64)
def _margins(size: int) -> NDArray[np.uint32]:
    """What stands at each place along a side with its margins."""
    return border_index(-_REACH, size + _REACH, size, "reflect101").numpy().astype(np.uint32)
