"""Results in notebooks: data frames, a table to look at, and curves over severity."""

from __future__ import annotations

import html
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from blemish.core.optional import optional_import

Columns: TypeAlias = Mapping[str, Sequence[Any]]

_SHOWN = 60

# Of titles over curves: the size of letters, how wide they are for that, and the fewest of them in a line.
_TITLE_POINTS, _LETTER, _SHORTEST = 10, 0.6, 20


class Tabular(ABC):
    """What notebooks ask of a result: ``to_pandas()``, ``to_polars()``, ``print`` and a table in a cell."""

    @abstractmethod
    def caption(self) -> str:
        """What the table is about, in a line."""

    @abstractmethod
    def table(self) -> Columns:
        """The columns of the table, all of one length."""

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        return optional_import("pandas").DataFrame(dict(self.table()))

    def to_polars(self) -> Any:
        """The table as a polars DataFrame."""
        return optional_import("polars").DataFrame(dict(self.table()))

    def __repr__(self) -> str:
        return text_table(self.caption(), self.table())

    def _repr_html_(self) -> str:
        return html_table(self.caption(), self.table())


@dataclass(frozen=True)
class Curve:
    """Values over severity, with the ends of their intervals where there are any."""

    severities: Sequence[float]
    values: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None


class Plotted(Tabular):
    """A table that can also be drawn."""

    @abstractmethod
    def curves(self) -> Mapping[str, Curve]:
        """What is drawn, by name."""

    @abstractmethod
    def axis(self) -> str:
        """What the curves show, with its unit."""

    def plot(self, axes: Any = None) -> Any:
        """Draw the curves with matplotlib, on ``axes`` or on new ones, which are given back."""
        axes = optional_import("matplotlib.pyplot").subplots(layout="constrained")[1] if axes is None else axes
        for name, curve in self.curves().items():
            (line,) = axes.plot(curve.severities, curve.values, marker="o", markersize=3, label=name)
            if curve.low is not None and curve.high is not None:
                axes.fill_between(curve.severities, curve.low, curve.high, color=line.get_color(), alpha=0.15)
        axes.set_xlabel("severity (0: clean)")
        axes.set_ylabel(self.axis())
        axes.set_title(_folded(self.caption(), axes), fontsize=_TITLE_POINTS)
        axes.legend(fontsize="x-small", ncols=2)
        return axes


def _folded(caption: str, axes: Any) -> str:
    """A caption in lines that are no wider than the axes: beside others, titles would run into each other."""
    letters = axes.bbox.width / axes.figure.dpi * 72 / (_TITLE_POINTS * _LETTER)
    return "\n".join(textwrap.fill(part, max(_SHORTEST, int(letters))) for part in caption.split(": "))


def text_table(caption: str, columns: Columns) -> str:
    """Aligned columns under a caption; of a long table the beginning."""
    lines = [[*columns], *_shown(columns)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    texts = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([caption, *texts, *_left_out(columns)])


def html_table(caption: str, columns: Columns) -> str:
    """The same as a table of a page; names are escaped."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in _shown(columns))
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    more = "".join(f"<p>{html.escape(line)}</p>" for line in _left_out(columns))
    return f"<table><caption>{html.escape(caption)}</caption><tr>{head}</tr>{body}</table>{more}"


def _shown(columns: Columns) -> Iterator[list[str]]:
    rows = zip(*(column[:_SHOWN] for column in columns.values()), strict=True)
    return ([_text(value) for value in row] for row in rows)


def _left_out(columns: Columns) -> list[str]:
    count = len(next(iter(columns.values()), ()))
    return [f"… and {count - _SHOWN} more rows; to_pandas() has all"] if count > _SHOWN else []


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
