"""``blemish score``: the numbers of one or several models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blemish.core.errors import InputError
from blemish.evaluation.runs import Run, find_runs, open_run
from blemish.metrics.baselines import published_baselines
from blemish.reports.reading import read_all
from blemish.reports.score_tables import score_tables
from blemish.reports.table_files import scores_csv, scores_json
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.progress import with_progress
from blemish.terminal.results import (
    AsCsv,
    AsJson,
    AsLatex,
    AsMarkdown,
    Format,
    Level,
    Output,
    Replicates,
    chosen_format,
    deliver,
)

__all__ = ["BaselineOption", "chosen_baseline", "score_command"]

BaselineOption = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="NAME|DIR",
        help="What errors are divided by: alexnet, or the folder of a run. Default: the benchmark's own.",
    ),
]


def chosen_baseline(text: str | None) -> Run | str | None:
    """A published baseline by name, or a run by its folder."""
    if text is None or text in published_baselines():
        return text
    if not Path(text).is_dir():
        raise InputError(f"baseline {text!r}; expected {' or '.join(published_baselines())}, or a folder with a run")
    return open_run(text)


@exit_on_input_error
def score_command(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR", help="Folders that blemish run made, of one model or of several.")
    ],
    baseline: BaselineOption = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    as_markdown: AsMarkdown = False,
    as_latex: AsLatex = False,
    output: Output = None,
    overwrite: Overwrite = False,
) -> None:
    """Print every number of the literature that applies to some results, with intervals.

    Numbers of corruptions that a model was trained on are marked with a dagger.

    Examples:

      blemish score results

      blemish score results/resnet50 results/vit --baseline results/alexnet

      blemish score results --csv -o numbers.csv
    """
    format_ = chosen_format(output, as_json=as_json, as_csv=as_csv, as_markdown=as_markdown, as_latex=as_latex)
    check_replaceable(output, overwrite=overwrite)
    runs, base = find_runs(folders), chosen_baseline(baseline)
    readings = with_progress(
        "score",
        lambda report: read_all(runs, baseline=base, level=level, replicates=replicates, report=report),
        first="reading records",
        unit=None,
        kept="nothing is changed.",
    )
    if format_ is Format.JSON:
        deliver(scores_json(readings), output)
    elif format_ is Format.CSV:
        deliver(scores_csv(readings), output)
    else:
        deliver(score_tables(readings), output, format_)
