"""``blemish score``: the numbers of one or several models."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich import box
from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

from blemish.cli.common import friendly, say
from blemish.cli.outputs import Overwrite, check_replaceable
from blemish.cli.progress import with_progress
from blemish.cli.terminal import console, emit, line
from blemish.core.printable import printable
from blemish.evaluation.runs import Run, find_runs, open_run
from blemish.metrics.baselines import published_baselines
from blemish.reports.machine import scores_csv, scores_json
from blemish.reports.reading import read_all
from blemish.reports.score_tables import score_tables
from blemish.reports.tables import Cell, Table, latex, markdown
from blemish.storage.files import write_bytes
from blemish.storage.marks import MARK
from blemish.types import InputError

__all__ = [
    "AsCsv",
    "AsJson",
    "AsLatex",
    "AsMarkdown",
    "BaselineOption",
    "Level",
    "Output",
    "Replicates",
    "Shape",
    "chosen_baseline",
    "chosen_shape",
    "deliver",
    "score_command",
]

BaselineOption = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="NAME|DIR",
        help="What errors are divided by: alexnet, or the folder of a run. Default: the benchmark's own.",
    ),
]
Level = Annotated[float, typer.Option("--level", help="The level of intervals.")]
Replicates = Annotated[
    int, typer.Option("--replicates", min=1, max=1_000_000, help="How often images are resampled for intervals.")
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON with all digits, for other programs.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="CSV with all digits, one row per number.")]
AsMarkdown = Annotated[bool, typer.Option("--markdown", help="Tables in Markdown.")]
AsLatex = Annotated[bool, typer.Option("--latex", help="Tables for LaTeX (booktabs).")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="A file to write to; its suffix (.json .csv .md .tex) may give the format."),
]


_FILE_WIDTH = 120
_SPACE = 3


class Shape(Enum):
    """How results are written."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"


_SUFFIXES = {".json": Shape.JSON, ".csv": Shape.CSV, ".md": Shape.MARKDOWN, ".tex": Shape.LATEX}


def chosen_shape(output: Path | None, *, as_json: bool, as_csv: bool, as_markdown: bool, as_latex: bool) -> Shape:
    """The format that was asked for, or else the one of the file's suffix, or else text."""
    flags = {Shape.JSON: as_json, Shape.CSV: as_csv, Shape.MARKDOWN: as_markdown, Shape.LATEX: as_latex}
    asked = [shape for shape, wanted in flags.items() if wanted]
    if len(asked) > 1:
        raise InputError(f"{' and '.join(f'--{shape.value}' for shape in asked)}; expected one format")
    by_suffix = _SUFFIXES.get(output.suffix.lower(), Shape.TEXT) if output is not None else Shape.TEXT
    return asked[0] if asked else by_suffix


def chosen_baseline(text: str | None) -> Run | str | None:
    """A published baseline by name, or a run by its folder."""
    if text is None or text in published_baselines():
        return text
    if not Path(text).is_dir():
        raise InputError(f"baseline {text!r}; expected {' or '.join(published_baselines())}, or a folder with a run")
    return open_run(text)


def deliver(content: str | Sequence[Table], output: Path | None, shape: Shape = Shape.TEXT) -> None:
    """Print tables in one of the shapes that people read, or a text; or write them to a file as a whole.

    A file has a mark where it disturbs nobody, so that it may be replaced: JSON and CSV are known without.
    """
    if isinstance(content, str):
        text = content
    elif shape is Shape.MARKDOWN:
        text = markdown(content) + "\n"
        text += f"\n<!-- {MARK} -->\n" if output is not None else ""
    elif shape is Shape.LATEX:
        text = (f"% {MARK}\n" if output is not None else "") + latex(content) + "\n"
    elif output is not None:
        text = _drawn(content, io.StringIO(), _FILE_WIDTH) + f"{MARK}\n"
    else:
        _drawn(content, None, None)
        return
    if output is None:
        emit(text.encode("utf-8", "replace").decode())
    else:
        write_bytes(output, text.encode("utf-8", "replace"))
        say(f"wrote {output}")


def _drawn(tables: Sequence[Table], stream: io.StringIO | None, width: int | None) -> str:
    """Draw tables; those that are too wide are continued below, so that no digit is ever cut off."""
    page = console(file=stream, width=width)
    usual = page.width
    for table in tables:
        page.print(line(table.title, "bold"))
        for part in _parts(table, usual):
            page.width = max(usual, _needed(part))
            page.print(_rich(part))
        page.width = usual
        for note in table.footnotes:
            page.print(line(note, "dim"))
        page.print()
    return stream.getvalue() if stream is not None else ""


def _widths(table: Table) -> list[int]:
    """What each column takes, with the space around it."""
    columns = zip(table.columns, *((str(cell) for cell in row) for row in table.rows), strict=True)
    return [max(cell_len(printable(text)) for text in column) + _SPACE for column in columns]


def _needed(table: Table) -> int:
    # Three columns of words hold lists and sentences, which may be folded.
    return 0 if table.text_columns > 2 else sum(_widths(table)) + _SPACE


def _parts(table: Table, width: int) -> list[Table]:
    """The table, or several with the same first columns and some of the others each."""
    if _needed(table) <= width:
        return [table]
    widths, first = _widths(table), table.text_columns
    parts: list[list[int]] = [[]]
    for place in range(first, len(widths)):
        if parts[-1] and sum(widths[:first]) + sum(widths[i] for i in parts[-1]) + widths[place] + _SPACE > width:
            parts.append([])
        parts[-1].append(place)
    chosen = [[*range(first), *part] for part in parts]
    return [
        replace(
            table,
            columns=tuple(table.columns[i] for i in part),
            rows=tuple(tuple(r[i] for i in part) for r in table.rows),
        )
        for part in chosen
    ]


def _rich(table: Table) -> RichTable:
    shown = RichTable(box=box.SIMPLE_HEAD, header_style="bold")
    for place, column in enumerate(table.columns):
        words = place < table.text_columns
        folds = table.text_columns > 2
        side: Literal["left", "right"] = "left" if words else "right"
        shown.add_column(
            line(column), justify=side, style="cyan" if place == 0 else "", no_wrap=not folds, overflow="fold"
        )
    before = None
    for row in table.rows:
        first = Cell("") if table.text_columns == 2 and row[0] == before else row[0]
        before = row[0]
        shown.add_row(*(_rich_cell(item) for item in (first, *row[1:])))
    return shown


def _rich_cell(item: Cell) -> Text:
    text = line(item.value)
    return text.append(f" [{item.interval}]", style="dim") if item.interval else text


@friendly
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
    shape = chosen_shape(output, as_json=as_json, as_csv=as_csv, as_markdown=as_markdown, as_latex=as_latex)
    check_replaceable(output, overwrite=overwrite)
    runs, base = find_runs(folders), chosen_baseline(baseline)
    readings = with_progress(
        "score",
        lambda report: read_all(runs, baseline=base, level=level, replicates=replicates, report=report),
        first="reading records",
        unit=None,
        kept="nothing is changed.",
    )
    if shape is Shape.JSON:
        deliver(scores_json(readings), output)
    elif shape is Shape.CSV:
        deliver(scores_csv(readings), output)
    else:
        deliver(score_tables(readings), output, shape)
