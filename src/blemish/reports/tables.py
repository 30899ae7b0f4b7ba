"""Tables as data, and as text that people paste: Markdown and LaTeX.

Numbers in which a model met a corruption that it was trained on carry a †, in every format.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from blemish.core.statistics import Estimate

DAGGER = "†"
FOOTNOTE = f"{DAGGER} The model was trained on a corruption in this number, which does not measure robustness to it."


@dataclass(frozen=True)
class Cell:
    """A text in a table, perhaps with an interval; ``marked`` where the model has seen the corruption in training."""

    text: str
    marked: bool = False
    interval: str = ""

    @property
    def value(self) -> str:
        """The text with its mark."""
        return self.text + DAGGER if self.marked else self.text

    def __str__(self) -> str:
        return f"{self.value} [{self.interval}]" if self.interval else self.value


@dataclass(frozen=True)
class Table:
    """A titled table. The first ``text_columns`` columns hold words, the others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    text_columns: int = 1
    notes: tuple[str, ...] = field(default=())

    @property
    def footnotes(self) -> tuple[str, ...]:
        """What stands below the table."""
        marked = any(cell.marked for row in self.rows for cell in row)
        return (*((FOOTNOTE,) if marked else ()), *self.notes)

    def headed_rows(self) -> Iterator[tuple[tuple[Cell, ...], bool]]:
        """Each row, and whether its first cell says what the one above says, so that it need not be written again.

        Only cells in the first of several columns of words can.
        """
        before: str | None = None
        for row in self.rows:
            yield row, self.text_columns > 1 and row[0].value == before
            before = row[0].value


def number(value: float, digits: int = 1) -> str:
    """A number with a real minus sign, and none before a zero.

    >>> number(-1.25, 2), number(-0.01)
    ('−1.25', '0.0')
    """
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def signed(value: float, digits: int = 1) -> str:
    """A number with its sign.

    >>> signed(1.25, 1), signed(-0.04, 1)
    ('+1.2', '0.0')
    """
    text = number(value, digits)
    return f"+{text}" if value > 0 and float(text) != 0 else text


NOTHING = Cell("–")
"""For what is not known."""


def estimate_cell(estimate: Estimate | None, digits: int = 1, *, write: Callable[..., str] = number) -> Cell:
    """A number with its interval, where it has one.

    >>> str(estimate_cell(Estimate(1.5, 1.0, 2.0), write=signed)), str(estimate_cell(None))
    ('+1.5 [+1.0, +2.0]', '–')
    """
    if estimate is None:
        return NOTHING
    value, low, high = (write(end, digits) for end in (estimate.value, estimate.low, estimate.high))
    return Cell(value, interval=f"{low}, {high}" if math.isfinite(estimate.width) else "")


def percent_cell(share: Estimate | None, *, write: Callable[..., str] = number) -> Cell:
    """A share in per cent with its interval, where it has one."""
    return estimate_cell(share and share.scaled(100), write=write)


def _one_line(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)


_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>|#~&])")


def markdown(tables: Sequence[Table]) -> str:
    """Tables as GitHub's Markdown; what has a meaning there is escaped."""
    return "\n".join(line for table in tables for line in _markdown_lines(table))


def _markdown_lines(table: Table) -> list[str]:
    def line(cells: Sequence[object]) -> str:
        return "| " + " | ".join(_MARKDOWN.sub(r"\\\1", _one_line(str(cell))) for cell in cells) + " |"

    sides = ["---" if index < table.text_columns else "---:" for index in range(len(table.columns))]
    title = _MARKDOWN.sub(r"\\\1", _one_line(table.title))
    lines = [
        f"### {title}",
        "",
        line(table.columns),
        f"| {' | '.join(sides)} |",
        *(line(row) for row in table.rows),
        "",
    ]
    for note in table.footnotes:
        lines += [_MARKDOWN.sub(r"\\\1", _one_line(note)), ""]
    return lines


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "†": r"$^\dagger$",
    "−": "$-$",
    "–": "--",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≈": r"$\approx$",
    "•": r"\textbullet{}",
}


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in _one_line(text))


def latex(tables: Sequence[Table]) -> str:
    """Tables for LaTeX; the preamble needs ``\\usepackage{booktabs}``."""
    return "\n".join(_latex_table(table) for table in tables)


def _latex_table(table: Table) -> str:
    sides = "l" * table.text_columns + "r" * (len(table.columns) - table.text_columns)
    rows = [" & ".join(_latex_text(str(cell)) for cell in row) + r" \\" for row in table.rows]
    notes = [rf"\par\smallskip\footnotesize {_latex_text(note)}" for note in table.footnotes]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_latex_text(table.title)}}}",
            rf"\begin{{tabular}}{{{sides}}}",
            r"\toprule",
            " & ".join(_latex_text(column) for column in table.columns) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *notes,
            r"\end{table}",
            "",
        ]
    )
