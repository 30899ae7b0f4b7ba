"""``blemish score``: every number of the literature that applies to some results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from blemish.core.errors import InputError
from blemish.core.reading import is_folder
from blemish.evaluation.runs import NOT_HERE, Run, open_run
from blemish.metrics.baselines import published_baselines
from blemish.metrics.published import PublishedModel, published_models
from blemish.reports.beside_tables import beside_tables
from blemish.reports.model_table import models_csv
from blemish.reports.reading import read_all
from blemish.reports.score_tables import score_tables
from blemish.reports.standings import standing_tables
from blemish.reports.table_files import scores_csv, scores_json
from blemish.reports.tables import Table
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.option_groups import spread_options
from blemish.terminal.printing import say
from blemish.terminal.progress import with_progress
from blemish.terminal.results import Format, Level, Replicates, TableOptions, deliver
from blemish.terminal.runs import named_run, named_runs

R = TypeVar("R")

Folders = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR|FILE",
        help="Folders that blemish run made, of one model or of several; or files of predictions (.csv, .tsv, .jsonl, "
        ".parquet), of all their models or of one (FILE:MODEL).",
    ),
]
Published = Annotated[
    list[str] | None,
    typer.Option(
        "--published",
        metavar="NAME|FILE",
        help="Published numbers to stand beside the models: leaderboard, testbed, or a CSV file with the columns "
        "model, clean_error, mce, relative_mce, mfr. May be repeated.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """How numbers are computed from records."""

    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|DIR",
            help="What errors are divided by: alexnet, the folder of a run, or a model in a file of predictions. "
            "Default: the benchmark's own.",
        ),
    ] = None
    level: Level = 0.95
    replicates: Replicates = 1000

    benchmark: Annotated[
        str | None,
        typer.Option(
            "--benchmark",
            "-b",
            metavar="NAME|FILE",
            help="Of files of predictions: the benchmark whose conditions are expected and whose metric is the "
            "headline. Default: the conditions that the files have.",
        ),
    ] = None

    annotations: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Of files of predicted boxes: COCO's annotations, which hold the truth."),
    ] = None

    def runs(self, paths: Sequence[Path]) -> list[Run]:
        """The runs that were named: in folders, or in files of predictions."""
        return named_runs(paths, benchmark=self.benchmark, annotations=self.annotations)

    def run(self, path: Path) -> Run:
        """The only run in a folder or file."""
        return named_run(path, benchmark=self.benchmark, annotations=self.annotations)

    def settings(self, runs: Sequence[Run]) -> dict[str, Any]:
        """The settings as `read_all`, `compare` and `write_report` take them, for these runs."""
        return {"baseline": _baseline(self.baseline, runs), "level": self.level, "replicates": self.replicates}


def chosen_published(names: list[str] | None) -> list[PublishedModel]:
    """The models of all published tables that were named."""
    return [model for name in names or () for model in published_models(name)]


def _baseline(text: str | None, runs: Sequence[Run]) -> Run | str | None:
    """One of several models in a file of predictions, a published baseline by name, or a run by its folder."""
    predicted = [run for run in runs if run.name == text and run.info.protocol.pixels == NOT_HERE]
    if predicted:
        return predicted[0]
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
def score_command(
    folders: Folders,
    how: ScoreOptions,
    results: TableOptions,
    published: Published = None,
    by_model: Annotated[
        bool,
        typer.Option(
            "--by-model",
            help="CSV with a row per model, for blemish build natural: accuracies as fractions, and the means of "
            "benchmarks. Results of one model under several benchmarks make one row.",
        ),
    ] = False,
) -> None:
    """Print every number of the literature that applies to some results, with intervals.

    Predictions that were made elsewhere come as files, whose shape blemish template writes.

    Numbers of corruptions that a model was trained on are marked with a dagger. Several models stand beside each other:
    clean error, mCE, relative mCE and mFR, and which lie above the line of the ImageNet testbed's models.

    Examples:

      blemish score results

      blemish score results/resnet50 results/vit --baseline results/alexnet

      blemish score results-c results-p --published leaderboard

      blemish score results --csv -o numbers.csv

      blemish score predictions.parquet --benchmark imagenet-c

      blemish score candidates natural --by-model -o models.csv
    """
    results.check()
    others = chosen_published(published)
    runs = how.runs(folders)
    if by_model:
        if results.format not in (Format.TEXT, Format.CSV):
            raise InputError(f"--by-model and {results.format.value}; expected CSV")
        # Intervals are not in it, so that nothing needs to be resampled.
        readings = read_with_progress("score", partial(read_all, runs, **{**how.settings(runs), "replicates": 1}))
        deliver(models_csv(readings), results.out)
        if unsure := [reading.label for reading in readings if reading.scores.near_chance]:
            say(f"{', '.join(unsure)}: near chance on clean images, so that the row means nothing", style="yellow")
        return
    readings = read_with_progress("score", partial(read_all, runs, **how.settings(runs)))

    def tables() -> list[Table]:
        summary, *rest = score_tables(readings)
        return [summary, *beside_tables(readings), *standing_tables(readings, others), *rest]

    results.deliver(json=lambda: scores_json(readings), csv=lambda: scores_csv(readings), tables=tables)
