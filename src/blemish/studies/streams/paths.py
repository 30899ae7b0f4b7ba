"""Paths over a calibration surface: from one corruption alone to the other alone, at a given accuracy all along.

A path runs from (s₁, 0) to (0, s₂). Each step lowers the severity of the first corruption or raises that of the second
by one step of the grid. Start and end are free, but for severity 0. Three rules choose among all paths:

- ``mean``: the exact optimum of the paper's objective, |mean accuracy − target|; of several paths the one with the
  smallest mean absolute deviation from the target.
- ``reference``: the release's rule. From the end backwards it keeps one partial mean per cell, the nearer to the
  target of the two it could keep. That is greedy: the best path may go through a worse partial mean.
- ``pointwise``: the smallest mean absolute deviation from the target, by an exact dynamic programme.

This is the choice for one path alone, whose ends need not meet those of the next: see `seams`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from blemish.core.errors import InputError
from blemish.studies.streams.end_costs import Cell, EndCosts, MeanCosts, PointwiseCosts
from blemish.studies.streams.surface import Surface

Objective = Literal["mean", "reference", "pointwise"]
OBJECTIVES: tuple[str, ...] = get_args(Objective)


@dataclass(frozen=True)
class SeverityPath:
    """Cells of a surface from the first corruption alone to the second alone.

    ``mean`` is the mean accuracy along it and ``deviation`` the mean absolute deviation from the target.
    """

    first: str
    second: str
    cells: tuple[Cell, ...]
    severities: tuple[tuple[float, float], ...]
    accuracies: tuple[float, ...]
    target: float
    objective: Objective

    @property
    def mean(self) -> float:
        """The mean accuracy along the path."""
        return float(np.mean(self.accuracies))

    @property
    def deviation(self) -> float:
        """The mean absolute deviation of the accuracy from the target."""
        return float(np.mean(np.abs(np.array(self.accuracies) - self.target)))


def find_path(surface: Surface, target: float, *, objective: Objective = "pointwise") -> SeverityPath:
    """The path that holds the accuracy nearest to the target, by the rule that is asked for."""
    check_rule(target, objective)
    if objective == "reference":
        return path_over(surface, _reference_path(surface, target), target, objective)
    costs = end_costs(surface, target, objective=objective)
    return path_over(surface, costs.cells(*costs.best()), target, objective)


def check_rule(target: float, objective: str) -> None:
    """Refuse a target that is no share, and a rule that there is not."""
    if not 0 <= target <= 1:
        raise InputError(f"target accuracy {target:g}; expected a share in 0 … 1, such as 0.4 for 40 %")
    if objective not in OBJECTIVES:
        raise InputError(f"unknown path objective {objective!r}; expected one of {', '.join(OBJECTIVES)}")


def end_costs(
    surface: Surface, target: float, *, objective: Objective = "pointwise", measured_only: bool = False
) -> EndCosts:
    """What the best paths between all ends cost, by a rule that has an optimum: all but the release's."""
    check_rule(target, objective)
    if objective == "reference":
        raise InputError("the release's rule chooses the ends too; expected mean or pointwise")
    rule = MeanCosts if objective == "mean" else PointwiseCosts
    return rule(surface, target, measured_only=measured_only)


def path_over(surface: Surface, cells: Sequence[Cell], target: float, objective: Objective) -> SeverityPath:
    """The path over these cells of a surface."""
    return SeverityPath(
        surface.first,
        surface.second,
        tuple(cells),
        tuple((surface.grid[a], surface.grid[b]) for a, b in cells),
        tuple(float(surface.accuracy[cell]) for cell in cells),
        target,
        objective,
    )


def _reference_path(surface: Surface, target: float) -> list[Cell]:
    values = surface.accuracy.tolist()
    side = len(values)
    kept: dict[Cell, tuple[float, list[Cell]]] = {(0, b): (values[0][b], [(0, b)]) for b in range(side)}
    for a in range(1, side):
        for b in range(side - 1, -1, -1):
            # Raising the second corruption wins ties, and lowering the first is all that is left at the edge.
            options = [kept[a, b + 1]] if b + 1 < side else []
            options.append(kept[a - 1, b])
            total, path = min(options, key=lambda kept: abs((kept[0] + values[a][b]) / (len(kept[1]) + 1) - target))
            kept[a, b] = (total + values[a][b], [(a, b), *path])
    starts = (kept[a, 0] for a in range(1, side))
    return min(starts, key=lambda kept: abs(kept[0] / len(kept[1]) - target))[1]
