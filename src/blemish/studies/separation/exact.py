"""How far apart the classes of a data set lie: exact smallest distances between points of different class.

Half the smallest distance is ε_min of MSCR (Siedel et al. 2022): the largest ball around every point in which a
classifier can be right everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from blemish.core.errors import InputError
from blemish.core.typed import Between
from blemish.ops.balls import Norm
from blemish.studies.separation.contradictions import contradictory_pairs
from blemish.studies.separation.goals import ClassPairs, Nearest
from blemish.studies.separation.search import Progress, Search

NORMS: tuple[Norm, ...] = ("l1", "l2", "linf")

_MOST_CLASSES = 4096
_LARGEST = 1e15


Label = str | bool | int | float
"""The name or number of a class."""
_Distance = Annotated[float, Between(0)]


@dataclass(frozen=True)
class Pair:
    """Two points of different class: their positions, classes and distance."""

    first: Annotated[int, Between(0)]
    second: Annotated[int, Between(0)]
    classes: tuple[Label, Label]
    distance: _Distance


@dataclass(frozen=True)
class Separation:
    """The smallest distances between classes, in units of the data; uint8 images count from 0 to 1."""

    norm: Norm
    points: Annotated[int, Between(2)]
    classes: list[Label]
    distance: _Distance
    """2r: the smallest distance of two points of different class."""
    closest: list[Pair]
    """The closest pairs of all, closest first."""
    pairs: list[Pair] | None
    """The closest pair of each two classes; None where they were not asked for."""
    contradictions: list[Pair]
    """Equal points of different class, at most 1,000 of them."""
    contradiction_count: Annotated[int, Between(0)]
    duplicates_excluded: bool
    scale: Annotated[float, Between(1e-300)]
    """Distances were divided by this: 255 for uint8."""

    @property
    def epsilon_min(self) -> float:
        """Half the distance: the largest radius at which balls around points of different class do not overlap."""
        return self.distance / 2

    def matrix(self) -> NDArray[np.float64]:
        """Smallest distances per two classes, in the order of ``classes``; NaN on the diagonal and where unknown."""
        number = {label: k for k, label in enumerate(self.classes)}
        result = np.full((len(number), len(number)), np.nan)
        for pair in self.pairs or ():
            g, h = (number[label] for label in pair.classes)
            result[g, h] = result[h, g] = pair.distance
        return result

    def record(self) -> dict[str, Any]:
        """Everything as plain values that JSON can hold."""
        return {
            "norm": self.norm,
            "points": self.points,
            "classes": self.classes,
            "distance": self.distance,
            "epsilon_min": self.epsilon_min,
            "scale": self.scale,
            "duplicates_excluded": self.duplicates_excluded,
            "contradiction_count": self.contradiction_count,
            "contradictions": [vars(pair) for pair in self.contradictions],
            "closest": [vars(pair) for pair in self.closest],
            "pairs": None if self.pairs is None else [vars(pair) for pair in self.pairs],
        }


def separation(
    points: ArrayLike,
    labels: ArrayLike,
    *,
    norm: Norm = "linf",
    per_pair: bool = True,
    closest: int = 10,
    exclude_duplicates: bool = False,
    scale: float | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> Separation:
    """The exact smallest distance between points of different class: 2r = min {‖x_i − x_j‖ : y_i ≠ y_j}.

    ``points`` is any (N, …) array, such as uint8 images or float features; a mapped file is read as needed. uint8 is
    compared in integers and reported divided by 255; give ``scale`` to divide by something else. Without ``per_pair``
    only the ``closest`` pairs of all are searched, which is faster. ``exclude_duplicates`` leaves out pairs at distance
    0, that is equal points with contradictory labels; they are listed in any case. The points themselves stay, with
    their distances to others; `without_contradictions` tells which to take out. Where several pairs are equally close,
    one of them is named.

    >>> nearest = separation([[0.0, 0.0], [1.0, 0.0], [0.25, 0.5]], ["a", "a", "b"])
    >>> nearest.distance, nearest.closest[0].first, nearest.closest[0].second
    (0.5, 0, 2)
    """
    data, codes, classes = checked_points(points, labels)
    check_norm(norm)
    if closest < 1:
        raise InputError(f"closest={closest}; expected at least 1 pair")
    if per_pair and len(classes) > _MOST_CLASSES:
        raise InputError(f"{len(classes)} classes; expected at most {_MOST_CLASSES} for per_pair=True")
    unit = _unit(data, scale)
    equal, count = contradictory_pairs(data, codes)
    goal = ClassPairs(codes, per_pair=per_pair, closest=closest, above_zero=exclude_duplicates)
    Search(data, codes, norm=norm, device=torch.device(device)).all_pairs(goal, progress)

    def named(distance: float, i: int, j: int) -> Pair:
        return Pair(i, j, (classes[codes[i]], classes[codes[j]]), distance / unit)

    top = goal.closest_pairs()
    if not top:
        raise InputError("all points of different class are equal; nothing is left without duplicates")
    pairs = None
    if per_pair:
        known = [(g, h) for g in range(len(classes)) for h in range(g + 1, len(classes)) if goal.pairs[g, h, 0] >= 0]
        pairs = [named(float(goal.best[g, h]), *goal.pairs[g, h].tolist()) for g, h in known]
    return Separation(
        norm=norm,
        points=len(data),
        classes=classes,
        distance=top[0][0] / unit,
        closest=[named(*pair) for pair in top],
        pairs=pairs,
        contradictions=[named(0.0, i, j) for i, j in equal],
        contradiction_count=count,
        duplicates_excluded=exclude_duplicates,
        scale=unit,
    )


def nearest_other_class(
    points: ArrayLike,
    labels: ArrayLike,
    *,
    norm: Norm = "linf",
    chosen: ArrayLike | None = None,
    exclude_duplicates: bool = False,
    scale: float | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each point, or each position in ``chosen``, the exact distance to its nearest point of another class.

    Returns the distances and the positions of the nearest points.

    >>> nearest_other_class([[0.0], [1.0], [4.0]], [0, 0, 1])[0].tolist()
    [4.0, 3.0, 3.0]
    """
    data, codes, _ = checked_points(points, labels)
    check_norm(norm)
    positions = np.arange(len(data)) if chosen is None else np.asarray(chosen)
    if positions.ndim != 1 or not np.issubdtype(positions.dtype, np.integer) or not len(positions):
        raise InputError(f"chosen of shape {positions.shape}, type {positions.dtype}; expected positions of points")
    if positions.min() < 0 or positions.max() >= len(data):
        raise InputError(f"chosen holds {positions.min()} … {positions.max()}; expected 0 … {len(data) - 1}")
    goal = Nearest(len(data), above_zero=exclude_duplicates)
    search = Search(data, codes, norm=norm, device=torch.device(device))
    search.from_points(np.unique(positions.astype(np.int64)), goal, progress)
    return goal.distance[positions] / _unit(data, scale), goal.other[positions]


def check_norm(norm: str) -> None:
    """Refuse a norm that is not known."""
    if norm not in NORMS:
        raise InputError(f"norm {norm!r}; expected one of {', '.join(NORMS)}")


def _unit(data: NDArray[Any], scale: float | None) -> float:
    if scale is None:
        return 255.0 if data.dtype == np.uint8 else 1.0
    if not (math.isfinite(scale) and scale > 0):
        raise InputError(f"scale={scale}; expected a positive number")
    return float(scale)


def checked_points(points: ArrayLike, labels: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64], list[Any]]:
    """Points as uint8, float32 or float64, the number of each point's class, and the classes' labels."""
    data = np.asanyarray(points)
    if data.dtype.kind not in "uifb":
        raise InputError(f"points of type {data.dtype}; expected numbers")
    if data.ndim < 2 or data.size == 0:
        raise InputError(f"points of shape {data.shape}; expected (N, …), one row per point")
    names = np.asarray(labels)
    if names.shape != (len(data),):
        raise InputError(f"labels of shape {names.shape} for {len(data)} points; expected one per point")
    if names.dtype.kind == "f" and not np.isfinite(names).all():
        raise InputError("labels hold NaN or infinity; expected one class per point")
    classes, codes = np.unique(names, return_inverse=True)
    if len(classes) < 2:
        raise InputError(f"all {len(data)} points are of class {classes[0]}; expected at least two classes")
    if data.dtype != np.uint8:
        if data.dtype not in (np.float32, np.float64):
            data = data.astype(np.float32 if data.dtype in (np.bool_, np.float16) else np.float64)
        _check_values(data)
    return data, codes.astype(np.int64), classes.tolist()


def _check_values(data: NDArray[Any]) -> None:
    step = max(1, (1 << 22) // int(np.prod(data.shape[1:])))
    for start in range(0, len(data), step):
        chunk = data[start : start + step]
        if not np.isfinite(chunk).all():
            row = start + int(np.flatnonzero(~np.isfinite(chunk).reshape(len(chunk), -1).all(1))[0])
            raise InputError(f"point {row} holds NaN or infinity; expected finite numbers")
        if np.abs(chunk).max() > _LARGEST:
            raise InputError(f"points hold values beyond {_LARGEST:g}; expected smaller ones: scale the data first")
