"""CSV files that a spreadsheet may open: texts in them are never formulas, and come back as they were."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Sequence

from blemish.core.errors import about, refused
from blemish.core.reading import read_text

# What makes a spreadsheet take a cell for a formula. A quote in front tells it that the cell is a text.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_QUOTE = '"'
_SPECIAL = re.compile(r'[,"\r\n]')
_GUARDED = re.compile(r"'+[=+\-@\t\r\n＝＋－＠]")


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV. Floats keep all their digits, and texts that a spreadsheet would compute are guarded by a quote.

    >>> csv_text([["name", "x"], ["=1+1", -0.5], ["fog", "-0.5"]])
    "name,x\\n'=1+1,-0.5\\nfog,-0.5\\n"
    """
    return "".join(",".join(map(_cell, row)) + "\n" for row in rows)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(float(value))  # NumPy's floats would name their type
    text = str(value)
    if isinstance(value, str) and _FORMULA.match(text) and not _is_number(text):
        text = f"'{text}"
    # Python's own writer leaves a carriage return as it is, which ends the row for its reader.
    return f'"{text.replace(_QUOTE, _QUOTE * 2)}"' if _SPECIAL.search(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_csv(path: str | os.PathLike[str]) -> list[list[str]]:
    """The rows of a CSV file, without empty ones and without the guards of `csv_text`."""
    text = read_text(path)
    with about(os.fspath(path)):
        return parse_csv(text)


def parse_csv(text: str) -> list[list[str]]:
    """The rows of a CSV text; see `read_csv`."""
    with refused("not readable as CSV", csv.Error):
        lines: Sequence[list[str]] = list(csv.reader(io.StringIO(text, newline="")))
    return [[plain_cell(cell) for cell in line] for line in lines if any(cell.strip() for cell in line)]


def plain_cell(cell: str) -> str:
    """A cell without the quote that keeps a spreadsheet from computing it."""
    return cell[1:] if _GUARDED.match(cell) else cell
