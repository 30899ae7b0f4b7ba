"""``blemish compare``: two models on the same images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blemish.cli.score import BaselineOption, chosen_baseline
from blemish.core.errors import InputError
from blemish.evaluation.runs import Run, find_runs
from blemish.metrics.compare import compare, protocol_differences
from blemish.reports.compare_tables import comparison_tables
from blemish.reports.reading import check_level, labels, marked
from blemish.reports.table_files import comparison_csv, comparison_json
from blemish.terminal.commands import complain, exit_on_input_error
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

__all__ = ["compare_command"]


def _single(folder: Path) -> Run:
    runs = find_runs([folder])
    if len(runs) > 1:
        names = ", ".join(run.folder.name for run in runs)
        raise InputError(f"{folder}: holds {len(runs)} runs ({names}); expected the folder of one")
    return runs[0]


@exit_on_input_error
def compare_command(
    first: Annotated[Path, typer.Argument(metavar="A", help="The folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The folder of another run, measured in the same way.")],
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Go on although the two were not measured in the same way.")
    ] = False,
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
    """Print the difference between two models, B less A, with intervals and paired tests.

    Results whose protocols differ in a way that changes the numbers are refused, and the fields named.

    Examples:

      blemish compare results/resnet50 results/vit

      blemish compare results/resnet50 other/resnet50 --anyway --json
    """
    format_ = chosen_format(output, as_json=as_json, as_csv=as_csv, as_markdown=as_markdown, as_latex=as_latex)
    check_replaceable(output, overwrite=overwrite)
    check_level(level)
    one, other = _single(first), _single(second)
    differences = protocol_differences(one, other)
    if differences and not anyway:
        raise InputError(
            f"{first} and {second} were not measured in the same way: {'; '.join(differences)}; "
            "--anyway compares them all the same"
        )
    for line in differences:
        complain(f"differs: {line}")
    chosen = chosen_baseline(baseline)
    found = with_progress(
        "compare",
        lambda report: compare(
            one, other, baseline=chosen, level=level, replicates=replicates, allow_mismatch=anyway, report=report
        ),
        first="reading records",
        unit=None,
        kept="nothing is changed.",
    )
    if format_ is Format.JSON:
        deliver(comparison_json(found), output)
    elif format_ is Format.CSV:
        deliver(comparison_csv(found), output)
    else:
        names = [marked(*pair) for pair in zip(labels([one, other]), found.near_chance, strict=True)]
        deliver(comparison_tables(found, names[0], names[1]), output, format_)
