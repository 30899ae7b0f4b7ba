"""``blemish build table``: published tables, and measured ones, to try the other commands with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from blemish.core.errors import InputError
from blemish.studies.construction.commands.common import check_output, write_rows
from blemish.studies.construction.measured import MEASURED, about_measured, measured_table
from blemish.studies.construction.published import PRINTED, PUBLISHED, TESTBED, printed_table, published_table
from blemish.studies.construction.tables import write_table
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.outputs import Overwrite
from blemish.terminal.printing import say

_NAMES = tuple(dict.fromkeys((*PUBLISHED, *PRINTED, *MEASURED)))


@exit_on_input_error
def table_command(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(_NAMES)}.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table to write (.csv).")],
    printed: Annotated[
        bool, typer.Option("--printed", help="The NOC paper's numbers as printed: relative errors in percent.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a table of accuracies, to try the other commands without training anything.

    imagenet-c and imagenet-noc hold the accuracies of a ResNet-18 trained on clean images (standard), of one trained on
    each corruption, and of AlexNet: models in rows, "clean" and corruptions in columns. A table of your own looks the
    same. …-coverage have a model trained on all corruptions of the other benchmark, …-pretrained nine pretrained
    classifiers, and testbed has 194 models on ImageNet-C and natural sets, for blemish build natural.

    catalogues-32 is a study of our own: small networks, each fine-tuned on one of 128 corruptions of all catalogues at
    32 pixels. It is the mean of three seeds, which are there one by one as well. docs/core.md tells what it says.

    Examples:

      blemish build table imagenet-c -o accuracies.csv

      blemish build table testbed -o models.csv

      blemish build table imagenet-noc-augmented --printed -o table4.csv

      blemish build table catalogues-32 -o catalogues.csv
    """
    check_output(out, ".csv", overwrite=overwrite)
    if name not in _NAMES:
        raise InputError(f"no table {name!r}; expected one of {', '.join(_NAMES)}")
    if printed:
        if name == TESTBED or name in MEASURED:
            raise InputError(f"{name} is a table of accuracies; expected no --printed")
        numbers = printed_table(name)
        rows = [["" if np.isnan(value) else f"{value:g}" for value in row] for row in numbers.values]
        lines = [[model, *row] for model, row in zip(numbers.models, rows, strict=True)]
        write_rows(out, ["model", *numbers.columns], lines)
        say(f"wrote {out}: {len(numbers.models)} models, {len(numbers.columns)} columns ({numbers.about})")
        return
    if name in PRINTED and name not in PUBLISHED:
        raise InputError(f"{name}: accuracies do not follow from what is printed; expected --printed with it")
    table = measured_table(name) if name in MEASURED else published_table(name)
    write_table(table, out)
    say(f"wrote {out}: {len(table.models)} models, {len(table.settings)} columns (fractions)")
    if name in MEASURED:
        say(about_measured())
