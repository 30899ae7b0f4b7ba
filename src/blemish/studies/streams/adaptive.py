"""Surfaces from fewer measurements: cells near the accuracies that paths will hold are measured, others interpolated.

A coarse lattice comes first. Each halving of its spacing measures the new cells whose interpolated accuracy is within a
margin of a target; the others keep the interpolated value. At the end, whatever unmeasured cells the best paths go
through are measured too, until none is left: a path never relies on a value that was guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.studies.streams.paths import Objective, find_path
from blemish.studies.streams.surface import Surface, isotonic

Cells = Sequence[tuple[int, int]]
Count = Callable[[Cells], NDArray[np.float64]]


@dataclass(frozen=True)
class Refinement:
    """Which accuracies paths will hold, how far from them cells are measured, and the spacing to begin with."""

    targets: tuple[float, ...]
    margin: float = 0.08
    spacing: int = 4
    objective: Objective = "pointwise"


def refined(count: Count, side: int, how: Refinement) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A surface of side × side accuracies, and which of them were measured. ``count`` measures cells."""
    if not how.targets or not all(0 <= target <= 1 for target in how.targets):
        raise InputError(f"targets {how.targets} of a refinement; expected one or more shares in 0 … 1")
    if how.margin < 0 or how.spacing < 1:
        raise InputError(f"margin {how.margin:g} and spacing {how.spacing}; expected 0 or more, and 1 or more")
    measured = np.zeros((side, side), dtype=np.bool_)
    values = np.zeros((side, side))
    spacing = how.spacing
    lattice = _lattice(side, spacing)
    _measure(count, values, measured, [(a, b) for a in lattice for b in lattice])
    while spacing > 1:
        guess = _interpolated(values, lattice)
        spacing = -(-spacing // 2)
        lattice = _lattice(side, spacing)
        new = [(a, b) for a in lattice for b in lattice if not measured[a, b]]
        values = np.where(measured, values, guess)
        _measure(count, values, measured, [cell for cell in new if _near(float(guess[cell]), how)])
    # Measured values are kept as they are; guesses must not rise with severity between them.
    values = np.where(measured, values, isotonic(values))
    while missing := _missing(values, measured, how):
        _measure(count, values, measured, missing)
    return values, measured


def _lattice(side: int, spacing: int) -> list[int]:
    return sorted({*range(0, side, spacing), side - 1})


def _near(value: float, how: Refinement) -> bool:
    return any(abs(value - target) <= how.margin for target in how.targets)


def _measure(count: Count, values: NDArray[np.float64], measured: NDArray[np.bool_], cells: Cells) -> None:
    if cells:
        rows, columns = zip(*cells, strict=True)
        values[rows, columns] = count(cells)
        measured[rows, columns] = True


def _interpolated(values: NDArray[np.float64], lattice: list[int]) -> NDArray[np.float64]:
    """Bilinear between the lattice's cells: it falls wherever the lattice does."""
    every = np.arange(len(values))
    coarse = values[np.ix_(lattice, lattice)]
    rows = np.stack([np.interp(every, lattice, row) for row in coarse])
    whole: NDArray[np.float64] = np.stack([np.interp(every, lattice, column) for column in rows.T]).T
    return whole


def _missing(values: NDArray[np.float64], measured: NDArray[np.bool_], how: Refinement) -> list[tuple[int, int]]:
    grid = tuple(5 * i / (len(values) - 1) for i in range(len(values)))  # paths know cells only
    surface = Surface("first", "second", values, 1, grid)
    paths = (find_path(surface, target, objective=how.objective) for target in how.targets)
    return sorted({cell for path in paths for cell in path.cells if not measured[cell]})


class SurfaceError(NamedTuple):
    """An adaptive surface beside the full one: the saving, errors of interpolated cells, and what its path loses.

    ``path_loss`` is by how much the mean absolute deviation of the adaptive surface's pointwise path, measured on the
    full surface, exceeds that of the full surface's own path.
    """

    saving: float
    mean: float
    largest: float
    near_mean: float
    path_loss: float


def compared(adaptive: Surface, full: Surface, how: Refinement) -> SurfaceError:
    """What an adaptive surface saved, and what it cost. ``near_mean`` is the mean error within the margin."""
    error = np.abs(adaptive.accuracy - full.accuracy)
    guessed = ~adaptive.known
    distance = np.min([np.abs(full.accuracy - target) for target in how.targets], axis=0)
    near = distance <= how.margin
    losses = []
    for target in how.targets:
        cells = find_path(adaptive, target, objective="pointwise").cells
        held = float(np.mean([abs(full.accuracy[cell] - target) for cell in cells]))
        losses.append(held - find_path(full, target, objective="pointwise").deviation)
    return SurfaceError(
        1 - adaptive.evaluated / adaptive.accuracy.size,
        float(error[guessed].mean()) if guessed.any() else 0.0,
        float(error[guessed].max()) if guessed.any() else 0.0,
        float(error[near].mean()) if near.any() else 0.0,
        max(losses),
    )
