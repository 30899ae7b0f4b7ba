"""``blemish report``: one page about one or several models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blemish.cli.score import BaselineOption, chosen_baseline
from blemish.evaluation.runs import find_runs
from blemish.reports.html import NO_CHARTS, charts_are_drawn, check_report_path, write_report
from blemish.studies.separation.section import separation_sections
from blemish.terminal.commands import exit_on_input_error, say
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.progress import with_progress
from blemish.terminal.results import Level, Replicates

__all__ = ["report_command"]


@exit_on_input_error
def report_command(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR", help="Folders that blemish run made, of one model or of several.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    baseline: BaselineOption = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    overwrite: Overwrite = False,
) -> None:
    """Write a page with every number, chart, example and setting; it works offline and needs no other file.

    A page that blemish made is replaced; another file is not, unless --overwrite is given.

    Where a folder holds separation.json or mscr.json (--json-file of blemish separation and mscr), they are shown too.

    Examples:

      blemish report results -o report.html

      blemish report results/resnet50 results/vit -o two.html
    """
    check_report_path(output)
    check_replaceable(output, overwrite=overwrite)
    runs = find_runs(folders)
    base, extra = chosen_baseline(baseline), [separation_sections(runs, folders)]
    written = with_progress(
        "report",
        lambda report: write_report(
            runs, output, extra=extra, baseline=base, level=level, replicates=replicates, report=report
        ),
        first="reading records",
        unit=None,
        kept="nothing is changed.",
    )
    models = "1 model" if len(runs) == 1 else f"{len(runs)} models"
    say(f"wrote {written} ({written.stat().st_size / 1e6:.1f} MB, {models})")
    if not charts_are_drawn():
        say(NO_CHARTS, style="yellow")
