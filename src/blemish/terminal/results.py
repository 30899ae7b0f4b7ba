"""Results on the terminal and in files: tables that people read, JSON and CSV, by the options that commands share."""

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

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.marks import MARK
from blemish.core.printable import printable
from blemish.reports.tables import Cell, Table, latex, markdown
from blemish.terminal.printing import console, emit, line, say

__all__ = [
    "AsCsv",
    "AsJson",
    "AsLatex",
    "AsMarkdown",
    "Format",
    "Level",
    "Output",
    "Replicates",
    "chosen_format",
    "deliver",
    "numbers",
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


class Format(Enum):
    """How results are written."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"


_SUFFIXES = {".json": Format.JSON, ".csv": Format.CSV, ".md": Format.MARKDOWN, ".tex": Format.LATEX}


def chosen_format(output: Path | None, *, as_json: bool, as_csv: bool, as_markdown: bool, as_latex: bool) -> Format:
    """The format that was asked for, or else the one of the file's suffix, or else text."""
    flags = {Format.JSON: as_json, Format.CSV: as_csv, Format.MARKDOWN: as_markdown, Format.LATEX: as_latex}
    asked = [format_ for format_, wanted in flags.items() if wanted]
    if len(asked) > 1:
        raise InputError(f"{' and '.join(f'--{format_.value}' for format_ in asked)}; expected one format")
    by_suffix = _SUFFIXES.get(output.suffix.lower(), Format.TEXT) if output is not None else Format.TEXT
    return asked[0] if asked else by_suffix


def deliver(content: str | Sequence[Table], output: Path | None, format_: Format = Format.TEXT) -> None:
    """Print tables in one of the shapes that people read, or a text; or write them to a file as a whole.

    A file has a mark where it disturbs nobody, so that it may be replaced: JSON and CSV are known without.
    """
    if isinstance(content, str):
        text = content
    elif format_ is Format.MARKDOWN:
        text = markdown(content) + "\n"
        text += f"\n<!-- {MARK} -->\n" if output is not None else ""
    elif format_ is Format.LATEX:
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


def numbers(text: str | None, option: str) -> tuple[float, ...] | None:
    """Numbers separated by commas."""
    if text is None:
        return None
    try:
        return tuple(float(item) for item in text.split(","))
    except ValueError:
        raise InputError(f"{option} {text!r}; expected one number, or three such as 0.485,0.456,0.406") from None
