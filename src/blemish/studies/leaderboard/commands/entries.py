"""``blemish leaderboard add``, ``import`` and ``tables``: entries of results and of published numbers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from blemish.core.csv_files import read_csv
from blemish.core.errors import InputError
from blemish.corruptions.catalog import hint
from blemish.evaluation.runs import Run, find_runs
from blemish.metrics.imports import TableInfo, adaptation_tables, import_infos, imported_table
from blemish.reports.tables import Cell, Table
from blemish.studies.leaderboard.board import ADAPTATION
from blemish.studies.leaderboard.entry import ModelEntry, Speed
from blemish.studies.leaderboard.lines import TIERS
from blemish.studies.leaderboard.make import entry_folder, import_table, make_entry
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.outputs import Overwrite
from blemish.terminal.printing import say
from blemish.terminal.progress import Report, with_progress
from blemish.terminal.results import deliver

_Board = Annotated[Path, typer.Option("--out", "-o", metavar="BOARD", help="The folder of the leaderboard.")]


@exit_on_input_error
def add_command(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders that blemish run made.")],
    board: _Board,
    images_per_second: Annotated[
        float | None, typer.Option("--images-per-second", help="A speed that you measured, of one model.")
    ] = None,
    speed_on: Annotated[
        str | None, typer.Option("--on", help="What the speed was measured on: machine, batch size, precision.")
    ] = None,
    link: Annotated[str, typer.Option(help="Where the model is to be found: a page, a paper.")] = "",
    notes: Annotated[str, typer.Option(help="What else readers should know.")] = "",
    overwrite: Overwrite = False,
) -> None:
    """Make entries of finished results: each a folder with all that was declared, and whether each image was right.

    An entry is sealed: its seal is the digest of everything in it.

    Examples:

      blemish leaderboard add results -o board

      blemish leaderboard add results/resnet50 -o board --images-per-second 2900 --on "A100, batch 256, float32"
    """
    runs = find_runs(folders)
    speed = _speed(images_per_second, speed_on)
    if speed is not None and len(runs) > 1:
        raise InputError(f"--images-per-second for {len(runs)} models; expected one at a time")
    folders_of = [entry_folder(run, board, overwrite=overwrite) for run in runs]
    if twice := [folder for folder in folders_of if folders_of.count(folder) > 1]:
        raise InputError(
            f"{twice[0]}: several of these results would be this entry; add them to different leaderboards"
        )
    for run in runs:
        work = partial(_make, run, board, speed, link, notes, overwrite)
        entry = with_progress("add", work, first="reading records", unit=None, kept="finished entries are kept.")
        size = sum(file.stat().st_size for file in entry.path.iterdir() if file.is_file())
        say(f"{entry.path}: {entry.name}, {size / 1000:,.1f} kB, {entry.header.seal}")
    say(f"next: blemish leaderboard show {board}; blemish leaderboard site {board} -o site", style="dim")


def _make(
    run: Run, board: Path, speed: Speed | None, link: str, notes: str, overwrite: bool, report: Report
) -> ModelEntry:
    return make_entry(run, board, speed=speed, link=link, notes=notes, overwrite=overwrite, report=report)


def _speed(images_per_second: float | None, on: str | None) -> Speed | None:
    if images_per_second is None and on is None:
        return None
    if images_per_second is None or not on:
        raise InputError("--images-per-second without --on, or --on alone; a speed means nothing without its machine")
    if not 0 < images_per_second < float("inf"):
        raise InputError(f"--images-per-second {images_per_second:g}; expected a number above 0")
    return Speed(images_per_second, on)


@exit_on_input_error
def import_command(
    file: Annotated[Path, typer.Argument(metavar="CSV", help="Published numbers in percent, a row for each model.")],
    board: _Board,
    benchmark: Annotated[
        str, typer.Option("--benchmark", "-b", help="Of which benchmark: imagenet-c, cifar10-c, or any name.")
    ],
    source: Annotated[str, typer.Option(help="Where the numbers were published.")],
    name: Annotated[str | None, typer.Option(help="What to call the table. Default: the name of the file.")] = None,
    metric: Annotated[str, typer.Option(help="What models are ranked by: mce or error.")] = "error",
    holds: Annotated[str, typer.Option(help="What the numbers are, but for an mCE: error or accuracy.")] = "error",
    column: Annotated[
        str | None, typer.Option(help="Without columns such as fog@1: the one to rank by. Default: called as --metric.")
    ] = None,
    images: Annotated[
        int | None, typer.Option(min=1, help="How many images each number is of; without it there are no intervals.")
    ] = None,
    pixels: Annotated[str, typer.Option(help="stored, made in memory, photographs …")] = "",
    baseline: Annotated[
        str | None, typer.Option(help="The row that an mCE is divided by. Default: the published AlexNet.")
    ] = None,
    comparable: Annotated[list[str] | None, typer.Option(help="What it can be compared with. May be repeated.")] = None,
    not_comparable: Annotated[
        list[str] | None, typer.Option(help="What it cannot be compared with. May be repeated.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Make an entry of numbers that others published: errors per cell (columns fog@1 …), or one number per model.

    Other columns may be clean (an error where the cells are errors, else an accuracy), parameters_m (millions), paper,
    venue and link.

    Examples:

      blemish leaderboard import cells.csv -o board --benchmark cifar10-c --images 10000 --source https://…

      blemish leaderboard import claims.csv -o board --benchmark imagenet-c --metric mce --source "Table 3"
    """
    if metric not in ("mce", "error"):
        raise InputError(f"--metric {metric}; expected mce or error")
    if holds not in ("error", "accuracy"):
        raise InputError(f"--holds {holds}; expected error or accuracy")
    header = (read_csv(file) or [[]])[0]
    has_cells = any("@" in key for key in header)
    info = TableInfo(
        name=name or file.stem,
        title=name or file.stem,
        benchmark=benchmark,
        tier="per-cell" if has_cells else "claimed",
        metric=cast(Literal["mce", "error"], metric),
        source=source,
        images=images,
        pixels=pixels,
        can=tuple(comparable or ()),
        cannot=tuple(not_comparable or ()),
        cells=cast(Literal["error", "accuracy"], holds) if has_cells else None,
        holds="value" if metric == "mce" else cast(Literal["error", "accuracy"], holds),
        divisor=baseline,
        column="" if has_cells else column or metric,
    )
    entry = import_table(file, board, info, overwrite=overwrite)
    say(f"{entry.path}: models: {len(entry.header.rows)}, {info.tier}, {entry.header.seal}")


@exit_on_input_error
def tables_command(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them, to see all that is known.")] = None,
) -> None:
    """List the published tables that come with blemish; of one, say what it can and cannot be compared with.

    Examples:

      blemish leaderboard tables

      blemish leaderboard tables robustbench/imagenet-c
    """
    deliver([_about(name) if name is not None else _all_tables()], None)


def _all_tables() -> Table:
    rows = [
        (Cell(info.name), Cell(info.tier), Cell(str(len(imported_table(info.name).rows))), Cell(info.title))
        for info in import_infos().values()
    ]
    count = sum(len(table.rows) for table in adaptation_tables())
    about = f"{len(adaptation_tables())} tables of test-time adaptation"
    rows.append((Cell(ADAPTATION), Cell("claimed"), Cell(str(count)), Cell(about)))
    heads = ("name", "tier", "rows", "what")
    notes = ("blemish leaderboard tables NAME says what one can be compared with.",)
    return Table("Published tables", heads, tuple(rows), text_columns=4, notes=notes)


def _about(name: str) -> Table:
    if name not in import_infos():
        raise InputError(f"published table {name!r}; {hint(name, list(import_infos()))}")
    info = import_infos()[name]
    facts = [
        ("source", info.source),
        ("date", info.date),
        ("licence", info.licence),
        ("benchmark", info.benchmark),
        ("tier", f"{info.tier}: {TIERS[info.tier]}"),
        *info.protocol.items(),
        *(("it can", text) for text in info.can),
        *(("it cannot", text) for text in info.cannot),
    ]
    return Table(info.title, ("what", ""), tuple((Cell(key), Cell(text)) for key, text in facts), text_columns=3)
