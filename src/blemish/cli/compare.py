"""``blemish compare``: two models on the same images."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blemish.cli.score import ScoreOptions, read_with_progress
from blemish.core.errors import InputError
from blemish.evaluation.runs import Run, find_runs
from blemish.metrics.compare import compare
from blemish.reports.compare_tables import comparison_tables
from blemish.reports.reading import labels, marked
from blemish.reports.table_files import comparison_csv, comparison_json
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.option_groups import spread_options
from blemish.terminal.printing import complain
from blemish.terminal.results import TableOptions


def single_run(folder: Path) -> Run:
    """The only run in a folder."""
    runs = find_runs([folder])
    if len(runs) > 1:
        names = ", ".join(run.folder.name for run in runs)
        raise InputError(f"{folder}: holds {len(runs)} runs ({names}); expected the folder of one")
    return runs[0]


@exit_on_input_error
@spread_options
def compare_command(
    first: Annotated[Path, typer.Argument(metavar="A", help="The folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The folder of another run, measured in the same way.")],
    how: ScoreOptions,
    results: TableOptions,
    allow_mismatch: Annotated[
        bool, typer.Option("--anyway", help="Go on although the two were not measured in the same way.")
    ] = False,
) -> None:
    """Print the difference between two models, B less A, with intervals and paired tests.

    Results whose protocols differ in a way that changes the numbers are refused, and the fields named.

    Examples:

      blemish compare results/resnet50 results/vit

      blemish compare results/resnet50 other/resnet50 --anyway --json
    """
    results.check()
    one, other = single_run(first), single_run(second)
    work = partial(compare, one, other, allow_mismatch=allow_mismatch, **how.settings())
    comparison = read_with_progress("compare", work)
    for line in comparison.protocol_differences:
        complain(f"differs: {line}")
    names = [marked(*pair) for pair in zip(labels([one, other]), comparison.near_chance, strict=True)]
    results.deliver(
        json=lambda: comparison_json(comparison),
        csv=lambda: comparison_csv(comparison),
        tables=lambda: comparison_tables(comparison, names[0], names[1]),
    )
