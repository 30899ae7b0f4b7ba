"""All results of some folders as one table, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.evaluation.runs import RunLike, as_runs
from blemish.metrics.scores import score_run
from blemish.metrics.titles import TITLES


def load_results(runs: RunLike | Sequence[RunLike], *, level: float = 0.95, replicates: int = 1000) -> Any:
    """A pandas DataFrame of the runs in a folder: model × corruption × severity × error × interval, in percent.

    A row for every condition that is finished; ``low`` and ``high`` are the ends of the interval at this ``level``.
    """
    pandas = optional_import("pandas")
    frames = []
    for run in as_runs(runs):
        scores = score_run(run, level=level, replicates=replicates)
        if scores.quantity != "error":
            raise InputError(f"{run.folder}: a run with {TITLES[scores.quantity].title}; expected errors of classes")
        heading = {"model": scores.model, "benchmark": scores.benchmark, "images": scores.images}
        frames.append(pandas.DataFrame(dict(scores.errors())).assign(**heading))
    whole = pandas.concat(frames, ignore_index=True)
    return whole[["model", "benchmark", "condition", "corruption", "severity", "error", "low", "high", "images"]]
