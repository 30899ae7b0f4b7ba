"""What the commands under ``blemish build`` share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from blemish.core.csv_files import csv_text
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.reports.figure_files import check_figure_name, save_figure
from blemish.studies.construction.figures import SAVING
from blemish.terminal.outputs import check_replaceable
from blemish.terminal.printing import say, show

Covering = Annotated[float, typer.Option(help="A corruption is covered by a higher score than this.")]
MatrixFile = Annotated[
    Path, typer.Argument(metavar="MATRIX", help="An overlap matrix, .csv or .json (blemish build overlap-scores).")
]

TableCorruptions = Annotated[
    list[str] | None,
    typer.Option(
        "--corruption",
        "-c",
        metavar="NAMES",
        help="Corruptions by their names in the table, separated by commas. May be repeated.",
    ),
]
Figure = Annotated[
    Path | None, typer.Option("--figure", metavar="FILE", help="Also draw it: a .png, .svg or .pdf file.")
]
Percent = Annotated[
    bool, typer.Option("--percent", help="The table holds percent (76.1) instead of fractions (0.761).")
]
Steps = Annotated[int, typer.Option(help="Give up a search after this many steps.")]


def check_output(path: Path | None, *suffixes: str, overwrite: bool, figures: Sequence[Path | None] = ()) -> None:
    """Refuse an output or a figure whose name has the wrong ending or is taken, before any work."""
    check_replaceable(path, *figures, overwrite=overwrite)
    for figure in figures:
        if figure is not None:
            check_figure_name(figure)
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{path}: expected a name that ends in {' or '.join(suffixes)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder; expected the name of a file")


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a small CSV table."""
    write_bytes(path, csv_text([header, *rows]).encode("utf-8", "backslashreplace"))


def draw(path: Path | None, make: Callable[[], Any]) -> None:
    """Draw a figure where one was asked for."""
    if path is None:
        return
    save_figure(make(), path, **SAVING)
    say(f"drew {path}")


def shown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table; all columns but the first are aligned to the right."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows:
        table.add_row(*row)
    show(table)
