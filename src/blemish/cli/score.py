"""``blemish score``: every number of the literature that applies to some results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from blemish.core.reading import is_folder
from blemish.evaluation.runs import Run, find_runs, open_run
from blemish.metrics.baselines import published_baselines
from blemish.reports.reading import read_all
from blemish.reports.score_tables import score_tables
from blemish.reports.table_files import scores_csv, scores_json
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.option_groups import spread_options
from blemish.terminal.progress import with_progress
from blemish.terminal.results import Level, Replicates, TableOptions

R = TypeVar("R")

Folders = Annotated[
    list[Path], typer.Argument(metavar="DIR", help="Folders that blemish run made, of one model or of several.")
]


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """How numbers are computed from records."""

    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|DIR",
            help="What errors are divided by: alexnet, or the folder of a run. Default: the benchmark's own.",
        ),
    ] = None
    level: Level = 0.95
    replicates: Replicates = 1000

    def settings(self) -> dict[str, Any]:
        """The settings as `read_all`, `compare` and `write_report` take them."""
        return {"baseline": _baseline(self.baseline), "level": self.level, "replicates": self.replicates}


def _baseline(text: str | None) -> Run | str | None:
    """A published baseline by name, or a run by its folder."""
    if text is None or text in published_baselines() or not is_folder(text):
        return text
    return open_run(text)


def read_with_progress(title: str, work: Callable[..., R]) -> R:
    """Do work that reads records while its progress is shown; it is given the report as ``report``."""
    return with_progress(
        title, lambda report: work(report=report), first="reading records", unit=None, kept="nothing is changed."
    )


@exit_on_input_error
@spread_options
def score_command(folders: Folders, how: ScoreOptions, results: TableOptions) -> None:
    """Print every number of the literature that applies to some results, with intervals.

    Numbers of corruptions that a model was trained on are marked with a dagger.

    Examples:

      blemish score results

      blemish score results/resnet50 results/vit --baseline results/alexnet

      blemish score results --csv -o numbers.csv
    """
    results.check()
    work = partial(read_all, find_runs(folders), **how.settings())
    readings = read_with_progress("score", work)
    results.deliver(
        json=lambda: scores_json(readings), csv=lambda: scores_csv(readings), tables=lambda: score_tables(readings)
    )
