"""Calibration surfaces: how many images a model still classifies under two corruptions, for each pair of severities."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blemish.corruptions.severity import MAX_SEVERITY
from blemish.types import InputError

__all__ = ["GRID", "Monotonicity", "Surface", "check_grid", "isotonic", "monotonicity", "repaired"]

GRID: tuple[float, ...] = tuple(i / 4 for i in range(21))
"""The severities of the published sets: 0, 0.25, …, 5."""


@dataclass(frozen=True)
class Surface:
    """Top-1 accuracy of a model under two corruptions, the first applied first.

    ``accuracy[a, b]`` belongs to severity ``grid[a]`` of the first corruption and ``grid[b]`` of the second. ``images``
    counts the images behind a measured value. Where ``measured`` is false, the value was interpolated.
    """

    first: str
    second: str
    accuracy: NDArray[np.float64]
    images: int
    grid: tuple[float, ...] = GRID
    measured: NDArray[np.bool_] | None = None

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

    @property
    def evaluated(self) -> int:
        """How many of the cells were measured."""
        return self.accuracy.size if self.measured is None else int(self.measured.sum())

    def to_json(self) -> dict[str, Any]:
        """A JSON object; `from_json` is the way back."""
        return {
            "first": self.first,
            "second": self.second,
            "images": self.images,
            "grid": list(self.grid),
            "accuracy": self.accuracy.tolist(),
            "measured": None if self.measured is None else self.measured.astype(int).tolist(),
        }

    @classmethod
    def from_json(cls, data: Any) -> Surface:
        """The surface that `to_json` wrote."""
        try:
            measured = data["measured"]
            return cls(
                str(data["first"]),
                str(data["second"]),
                np.array(data["accuracy"], dtype=np.float64),
                int(data["images"]),
                tuple(float(value) for value in data["grid"]),
                None if measured is None else np.array(measured, dtype=np.bool_),
            )
        except InputError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a calibration surface ({error!r}); expected what calibration writes") from error


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
    """The surface with its accuracies made to fall with both severities; see `isotonic`."""
    return replace(surface, accuracy=isotonic(surface.accuracy))
