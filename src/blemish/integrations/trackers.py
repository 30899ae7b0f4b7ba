"""Scores in what experiments are tracked with: MLflow, TensorBoard, Weights & Biases."""

from __future__ import annotations

import re
from typing import Any

from blemish.core.optional import optional_import
from blemish.metrics.scored import Scores


def tracked(scores: Scores, *, intervals: bool = True) -> dict[str, float]:
    """All scores by a name that every tracker takes, in the units they are shown in.

    BENCHMARK/METRIC for the whole benchmark, BENCHMARK/METRIC.OF for its parts (``imagenet-c/error.fog.3`` is the error
    under fog@3); with ``_low`` and ``_high`` behind them the ends of their intervals.
    """
    numbers = {}
    for row in scores.rows:
        # No name is the beginning of another's path: MLflow may keep them as files.
        name = f"{_plain(scores.benchmark)}/{row.name}" + (f".{_plain(row.of)}" if row.of else "")
        numbers[name] = row.estimate.value
        if intervals:
            numbers |= {f"{name}_low": row.estimate.low, f"{name}_high": row.estimate.high}
    return numbers


def log_to_mlflow(scores: Scores, *, step: int | None = None) -> None:
    """Log all scores to MLflow's active run, or to a new one."""
    mlflow = optional_import("mlflow")
    mlflow.log_metrics(tracked(scores), step=step)


def log_to_tensorboard(scores: Scores, writer: Any, *, step: int | None = None) -> None:
    """Log all scores to a ``SummaryWriter`` of torch or tensorboardX."""
    for name, value in tracked(scores).items():
        writer.add_scalar(name, value, global_step=step)


def log_to_wandb(scores: Scores, run: Any = None, *, step: int | None = None) -> None:
    """Log all scores to a run of Weights & Biases; by default to the active one."""
    target = optional_import("wandb") if run is None else run
    target.log(tracked(scores), step=step)


def _plain(text: str) -> str:
    return re.sub(r"[^\w.-]+", "_", text.replace("@", ".")).strip("_")
