"""``blemish compare``: two models on the same images."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from blemish.cli.score import ScoreOptions, read_with_progress
from blemish.metrics.compare import compare
from blemish.reports.compare_tables import comparison_tables
from blemish.reports.reading import labels, marked
from blemish.reports.table_files import comparison_csv, comparison_json
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.option_groups import spread_options
from blemish.terminal.printing import complain
from blemish.terminal.results import TableOptions


@exit_on_input_error
@spread_options
def compare_command(
    first: Annotated[Path, typer.Argument(metavar="A", help="The folder of a run, or FILE:MODEL of predictions.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The folder of another run, measured in the same way.")],
    how: ScoreOptions,
    results: TableOptions,
    allow_mismatch: Annotated[
        bool, typer.Option("--anyway", help="Go on although the two were not measured in the same way.")
    ] = False,
) -> None:
    """Print the difference between two models, B minus A, with intervals and paired tests.

    Results whose protocols differ in a way that changes the numbers are refused, and the fields named.

    Examples:

      blemish compare results/resnet50 results/vit

      blemish compare results/resnet50 other/resnet50 --anyway --json

      blemish compare predictions.csv:resnet50 predictions.csv:vit
    """
    results.check()
    one, other = how.run(first), how.run(second)
    work = partial(compare, one, other, allow_mismatch=allow_mismatch, **how.settings([one, other]))
    comparison = read_with_progress("compare", work)
    for line in comparison.protocol_differences:
        complain(f"differs: {line}")
    names = [marked(*pair) for pair in zip(labels([one, other]), comparison.near_chance, strict=True)]
    results.deliver(
        json=lambda: comparison_json(comparison),
        csv=lambda: comparison_csv(comparison),
        tables=lambda: comparison_tables(comparison, names[0], names[1]),
    )
