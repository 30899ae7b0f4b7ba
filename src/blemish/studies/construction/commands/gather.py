"""``blemish build gather``: tables for the other commands, from the results of ``blemish run``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blemish.evaluation.runs import find_runs
from blemish.studies.construction.commands.common import check_output
from blemish.studies.construction.gather import gather_accuracies, gather_correct, write_correct
from blemish.studies.construction.tables import write_table
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.outputs import Overwrite
from blemish.terminal.printing import say


@exit_on_input_error
def gather_command(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders that blemish run made.")],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Accuracies as .csv, or correctness image by image as .npz, for intervals."),
    ],
    overwrite: Overwrite = False,
) -> None:
    """Gather the results of several models into one table of accuracies, or of correctness image by image.

    A corruption that was measured at several severities counts with its mean accuracy. Runs must share their protocol,
    images and conditions.

    Examples:

      blemish build gather results -o accuracies.csv

      blemish build gather results -o correct.npz
    """
    check_output(out, ".csv", ".npz", overwrite=overwrite)
    runs = find_runs(folders)
    if out.suffix.lower() == ".csv":
        table = gather_accuracies(runs)
        write_table(table, out)
        say(f"wrote {out}: {len(table.models)} models, {len(table.settings)} columns (fractions)")
        return
    gathered = gather_correct(runs)
    write_correct(gathered, out)
    models, settings, images = gathered.correct.shape
    say(f"wrote {out}: {models} models, {settings} settings, {images} images")
