"""Scores of all runs of a set together: means over runs, with intervals that say what other seeds might have given.

Runs of one seed visit the same corruptions in the same order, at every speed, so that they are not independent; and the
speeds are chosen, not drawn. So a mean over all runs is a mean over seeds of means over speeds, and its interval is
Student's over the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate, estimate_mean
from blemish.studies.streams.set_runs import FinishedRun

_NUMBERS = ("accuracy", "minimum", "mean", "maximum")
_POINTS = 240


def mean_over_seeds(values: Mapping[tuple[int, int], float], *, level: float = 0.95) -> Estimate:
    """The mean of the values of all runs, each given by (seed, speed), and its interval over the seeds.

    A single seed has no interval: its ends are not numbers.

    >>> error = mean_over_seeds({(43, 1000): 0.1, (43, 2000): 0.3, (44, 1000): 0.3, (44, 2000): 0.5})
    >>> round(error.value, 3), round(error.high - error.value, 3)
    (0.3, 1.271)
    """
    seeds = sorted({seed for seed, _ in values})
    speeds = sorted({speed for _, speed in values})
    missing = [f"seed {seed} at speed {speed}" for seed in seeds for speed in speeds if (seed, speed) not in values]
    if missing or not values:
        raise InputError(f"no value for {', '.join(missing) or 'any run'}; expected one for each seed and speed")
    return estimate_mean([np.mean([values[seed, speed] for speed in speeds]) for seed in seeds], level=level)


@dataclass(frozen=True)
class MethodScores:
    """One method over all runs of a set.

    The accuracy over all images; the least, mean and greatest windowed accuracy; what it gains on the model that is not
    adapted, run by run, where that was run; and in how many runs it collapsed.
    """

    accuracy: Estimate
    minimum: Estimate
    mean: Estimate
    maximum: Estimate
    gain: Estimate | None
    collapsed: int


@dataclass(frozen=True)
class ColumnScores:
    """All runs of a set at one target, and the scores of each method over them."""

    column: str
    runs: tuple[FinishedRun, ...]
    methods: dict[str, MethodScores]


def column_scores(runs: Iterable[FinishedRun], *, level: float = 0.95) -> list[ColumnScores]:
    """The scores over runs, for each set (and target) in the order of the runs."""
    columns: dict[str, list[FinishedRun]] = {}
    for run in runs:
        columns.setdefault(run.run.column, []).append(run)
    return [
        ColumnScores(
            column,
            tuple(members),
            {name: _method_scores(members, name, level) for name in members[0].scores["methods"]},
        )
        for column, members in columns.items()
    ]


def _method_scores(runs: Sequence[FinishedRun], name: str, level: float) -> MethodScores:
    def over_runs(number: str, less: str | None = None) -> Estimate:
        """A number of the method over all runs; where another method is named, less that of the other."""
        values = {}
        for run in runs:
            methods = run.scores["methods"]
            other = 0.0 if less is None else float(methods[less][number])
            values[run.run.seed, run.run.speed] = float(methods[name][number]) - other
        return mean_over_seeds(values, level=level)

    compared = name != "none" and "none" in runs[0].scores["methods"]
    return MethodScores(
        accuracy=over_runs("accuracy"),
        minimum=over_runs("minimum"),
        mean=over_runs("mean"),
        maximum=over_runs("maximum"),
        gain=over_runs("accuracy", less="none") if compared else None,
        collapsed=sum(run.scores["methods"][name]["collapse"] is not None for run in runs),
    )


def running_means(column: ColumnScores) -> tuple[list[float], dict[str, list[float]]]:
    """The windowed accuracy of each method, averaged over runs as far as all of them go, and after how many images."""
    curves = [run.scores["running"] for run in column.runs]
    first, last = max(curve["at"][0] for curve in curves), min(curve["at"][-1] for curve in curves)
    at = np.linspace(first, last, _POINTS if last > first else 1)
    means = {
        name: np.mean([np.interp(at, curve["at"], curve[name]) for curve in curves], axis=0).tolist()
        for name in column.methods
    }
    return at.tolist(), means


def scores_json(columns: Sequence[ColumnScores]) -> dict[str, Any]:
    """All of it for other programs, intervals that do not exist as nothing."""
    return {column.column: _column_json(column) for column in columns}


def _column_json(column: ColumnScores) -> dict[str, Any]:
    return {
        "methods": {
            name: {
                key: _estimate_json(value) if isinstance(value, Estimate) else value
                for key, value in vars(scores).items()
            }
            for name, scores in column.methods.items()
        },
        "runs": [
            {
                "folder": run.run.folder,
                "seed": run.run.seed,
                "speed": run.run.speed,
                "images": run.scores["images"],
                "window": run.scores["window"],
                "held": run.scores.get("held"),
                "seams": run.scores["seams"],
                "methods": {
                    name: {key: values[key] for key in (*_NUMBERS, "collapse")}
                    for name, values in run.scores["methods"].items()
                },
            }
            for run in column.runs
        ],
    }


def _estimate_json(estimate: Estimate) -> dict[str, float | None]:
    ends = {"low": estimate.low, "high": estimate.high}
    return {"value": estimate.value} | {end: value if math.isfinite(value) else None for end, value in ends.items()}
