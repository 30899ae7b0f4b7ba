"""Calibration surfaces: how many images a model still classifies under two corruptions, for each pair of severities."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.corruptions.severity import MAX_SEVERITY

GRID: tuple[float, ...] = tuple(i / 4 for i in range(21))
"""The severities of the published sets: 0, 0.25, …, 5."""


@dataclass(frozen=True)
class Surface:
    """Top-1 accuracy of a model under two corruptions, the first applied first.

    ``accuracy[a, b]`` belongs to severity ``grid[a]`` of the first corruption and ``grid[b]`` of the second. ``images``
    counts the images behind a measured value. Where ``measured`` is false, the value was interpolated. ``hits[a, b]``
    says which of the images were right, as packed bits (`numpy.packbits`), where that was kept.
    """

    first: str
    second: str
    accuracy: NDArray[np.float64]
    images: int
    grid: tuple[float, ...] = GRID
    measured: NDArray[np.bool_] | None = None
    hits: NDArray[np.uint8] | None = None

    def __post_init__(self) -> None:
        """Refuse a surface that contradicts itself."""
        name = f"surface of {self.first} and {self.second}"
        check_grid(self.grid)
        side = len(self.grid)
        if self.accuracy.shape != (side, side):
            raise InputError(f"{name}: shape {self.accuracy.shape} for {side} severities; expected ({side}, {side})")
        if not bool(((self.accuracy >= 0) & (self.accuracy <= 1)).all()):
            raise InputError(f"{name}: accuracies outside 0 … 1; expected shares, not percent")
        if self.measured is not None and self.measured.shape != self.accuracy.shape:
            raise InputError(f"{name}: measured of shape {self.measured.shape}; expected {self.accuracy.shape}")
        if self.images < 1:
            raise InputError(f"{name}: {self.images} images; expected at least one")
        packed = (side, side, -(-self.images // 8))
        if self.hits is not None and self.hits.shape != packed:
            raise InputError(f"{name}: hits of shape {self.hits.shape}; expected {packed}")

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which cells were measured."""
        return np.ones(self.accuracy.shape, dtype=np.bool_) if self.measured is None else self.measured

    @property
    def evaluated(self) -> int:
        """How many of the cells were measured."""
        return int(self.known.sum())

    def right(self, cell: tuple[int, int]) -> NDArray[np.bool_]:
        """Which images were classified correctly in a measured cell."""
        if self.hits is None or not self.known[cell]:
            raise InputError(f"surface of {self.first} and {self.second}: nothing is known of the images in {cell}")
        return np.unpackbits(self.hits[cell], count=self.images).astype(np.bool_)


def check_grid(grid: tuple[float, ...]) -> None:
    """Refuse severities that are not increasing from 0."""
    rising = all(low < high for low, high in itertools.pairwise(grid))
    if len(grid) < 2 or grid[0] != 0 or not rising or grid[-1] > MAX_SEVERITY:
        raise InputError(f"severity grid {grid}; expected at least two rising numbers from 0 to at most {MAX_SEVERITY}")


class Monotonicity(NamedTuple):
    """How far a surface is from falling with both severities.

    ``steps`` counts the neighbouring cells between which accuracy rises with severity, of all neighbours; ``largest``
    is the greatest such rise; ``largest_repair`` the greatest change that `repaired` makes.
    """

    steps: int
    of: int
    largest: float
    largest_repair: float


def monotonicity(surface: Surface) -> Monotonicity:
    """Whether difficulty rises with severity, as the paper asks, and by how much it does not."""
    values = surface.accuracy
    rises = np.concatenate([np.diff(values, axis=0).ravel(), np.diff(values, axis=1).ravel()])
    change = float(np.abs(isotonic(values) - values).max())
    return Monotonicity(int((rises > 0).sum()), rises.size, float(max(0.0, rises.max())), change)


def isotonic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the highest falling surface below and the lowest falling surface above.

    Both envelopes fall along both axes, hence so does their mean, and no falling surface has a smaller largest
    distance from the values: it is the isotonic regression of the maximum norm (Barlow et al., 1972).

    >>> isotonic(np.array([[0.9, 0.5], [0.6, 0.8]])).tolist()
    [[0.9, 0.65], [0.7, 0.65]]
    """
    below = np.minimum.accumulate(np.minimum.accumulate(values, axis=0), axis=1)
    flipped = values[::-1, ::-1]
    above = np.maximum.accumulate(np.maximum.accumulate(flipped, axis=0), axis=1)[::-1, ::-1]
    mean: NDArray[np.float64] = (below + above) / 2
    return mean


def repaired(surface: Surface) -> Surface:
    """The surface with its accuracies made to fall with both severities; see `isotonic`.

    Its values are no longer shares of images, so it does not say which ones were right.
    """
    return replace(surface, accuracy=isotonic(surface.accuracy), hits=None)
