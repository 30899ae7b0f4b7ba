"""Results on the terminal and in files: tables that people read, JSON and CSV, by the options that commands share."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import console, emit, line, say

Level = Annotated[float, typer.Option("--level", help="The level of intervals.")]
Replicates = Annotated[
    int, typer.Option("--replicates", min=1, max=1_000_000, help="How often images are resampled for intervals.")
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


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How results are written, and where to."""

    as_json: Annotated[bool, typer.Option("--json", help="JSON with all digits, for other programs.")] = False
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV with all digits, one row per number.")] = False
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Tables in Markdown.")] = False
    as_latex: Annotated[bool, typer.Option("--latex", help="Tables for LaTeX (booktabs).")] = False
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="A file to write to; its suffix (.json .csv .md .tex) may give the format."),
    ] = None
    overwrite: Overwrite = False

    @property
    def format(self) -> Format:
        """The format that was asked for, or else the one of the file's suffix, or else text."""
        flags = {
            Format.JSON: self.as_json,
            Format.CSV: self.as_csv,
            Format.MARKDOWN: self.as_markdown,
            Format.LATEX: self.as_latex,
        }
        asked = [format_ for format_, wanted in flags.items() if wanted]
        if len(asked) > 1:
            raise InputError(f"{' and '.join(f'--{format_.value}' for format_ in asked)}; expected one format")
        by_suffix = Format.TEXT if self.out is None else _SUFFIXES.get(self.out.suffix.lower(), Format.TEXT)
        return asked[0] if asked else by_suffix

    def check(self) -> None:
        """Refuse two formats at once, and a file that is to be kept, before any work."""
        assert self.format
        check_replaceable(self.out, overwrite=self.overwrite)

    def deliver(
        self, *, json: Callable[[], str], csv: Callable[[], str], tables: Callable[[], Sequence[Table]]
    ) -> None:
        """Print results, or write them to the file, in the format that was asked for."""
        if self.format is Format.JSON:
            deliver(json(), self.out)
        elif self.format is Format.CSV:
            deliver(csv(), self.out)
        else:
            deliver(tables(), self.out, self.format)


def deliver(content: str | Sequence[Table], output: Path | None, format_: Format = Format.TEXT) -> None:
    """Print tables in one of the shapes that people read, or a text; or write them to a file as a whole.

    A file has a mark where it disturbs nobody, so that it may be replaced: JSON and CSV are known without.
    """
    if isinstance(content, str):
        text = content
    elif format_ is Format.MARKDOWN:
        text = markdown(content) + "\n" if output is None else marked_markdown(content)
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


def marked_markdown(tables: Sequence[Table]) -> str:
    """The content of a file of tables in Markdown, with the mark that lets it be replaced."""
    return f"{markdown(tables)}\n\n<!-- {MARK} -->\n"


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
    for index in range(first, len(widths)):
        if parts[-1] and sum(widths[:first]) + sum(widths[i] for i in parts[-1]) + widths[index] + _SPACE > width:
            parts.append([])
        parts[-1].append(index)
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
    for index, column in enumerate(table.columns):
        words = index < table.text_columns
        folds = table.text_columns > 2
        side: Literal["left", "right"] = "left" if words else "right"
        shown.add_column(
            line(column), justify=side, style="cyan" if index == 0 else "", no_wrap=not folds, overflow="fold"
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
