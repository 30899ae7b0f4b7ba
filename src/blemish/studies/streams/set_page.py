"""All runs of some sets as a page: methods × sets, windowed accuracy, run by run, and what was walked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blemish.core.files import write_bytes
from blemish.reports.charts import Line, time_lines
from blemish.reports.page import ALL_INSIDE, Chart, Page, Section, render_page
from blemish.studies.streams.set_scores import ColumnScores, running_means
from blemish.studies.streams.set_tables import (
    INTERVALS,
    accuracy_table,
    gain_table,
    run_table,
    walk_table,
    window_table,
)
from blemish.version import VERSION

_UNADAPTED = "none"


@dataclass(frozen=True)
class Setting:
    """What a page says beside the numbers: the model, the images, and everything else in lines of two columns."""

    model: str
    images: str
    lines: Mapping[str, str]


def write_set_page(
    columns: Sequence[ColumnScores], path: Path, *, setting: Setting, warnings: Sequence[str] = ()
) -> None:
    """Write the page; the file is complete or not there."""
    write_bytes(path, set_page(columns, setting=setting, warnings=warnings).encode("utf-8"))


def set_page(columns: Sequence[ColumnScores], *, setting: Setting, warnings: Sequence[str] = ()) -> str:
    """The whole page as text; the same runs give the same page."""
    runs = sum(len(column.runs) for column in columns)
    names = "; ".join(column.column for column in columns)
    sections = [_summary(columns), _windows(columns), _runs(columns), _setting(columns, setting)]
    page = Page(
        title=f"Continuously changing corruptions: {setting.model}",
        kicker="Continuously changing corruptions",
        heading=f"Adaptation of {setting.model}",
        lead=f"{runs} run{'s' if runs > 1 else ''} over {names}, on {setting.images}.",
        warnings=list(warnings),
        sections=sections,
        footer=f"Made by blemish {VERSION} from the summary of each run. {ALL_INSIDE}",
    )
    return render_page(page)


def _section(identity: str, title: str, **data: Any) -> Section:
    return Section(identity, title, f"studies/streams/templates/{identity}.html.j2", data)


def _summary(columns: Sequence[ColumnScores]) -> Section:
    compared = any(scores.gain for column in columns for scores in column.methods.values())
    tables = [accuracy_table(columns), *([gain_table(columns)] if compared else [])]
    return _section("accuracy", "Accuracy", tables=tables, intervals=INTERVALS)


def _windows(columns: Sequence[ColumnScores]) -> Section:
    """For each set a chart of all runs together, one for each run, and a table."""
    sets: list[dict[str, Any]] = []
    for number, column in enumerate(columns):
        at, means = running_means(column)
        together = _chart(f"windows-{number}", f"{column.column}, mean of all runs", at, means, wide=True)
        each = [
            _chart(
                f"windows-{number}-{run_number}",
                f"seed {run.run.seed}, {run.run.speed:,} images a step",
                run.scores["running"]["at"],
                {name: run.scores["running"][name] for name in column.methods},
            )
            for run_number, run in enumerate(column.runs)
        ]
        names = [name for name in column.methods if name != _UNADAPTED]
        sets.append(
            {
                "names": names,
                "unadapted": _UNADAPTED in column.methods,
                "together": together,
                "each": each if len(each) > 1 else [],
                "table": window_table(column),
            }
        )
    return _section("windows", "Windowed accuracy", sets=sets)


def _chart(
    identity: str, title: str, at: Sequence[float], curves: Mapping[str, Sequence[float]], *, wide: bool = False
) -> Chart:
    """Accuracy in per cent against images, a line per method; the model that is not adapted is gray and dotted."""
    adapted = [name for name in curves if name != _UNADAPTED]
    lines = [
        Line(name, at, [100 * value for value in values], None if name == _UNADAPTED else adapted.index(name))
        for name, values in curves.items()
    ]
    return time_lines(identity, title, lines, titles=("images", "accuracy, %"), wide=wide)


def _runs(columns: Sequence[ColumnScores]) -> Section:
    falls = [
        f"{run.run}: {name} {_fall_text(values['collapse'])}"
        for column in columns
        for run in column.runs
        for name, values in run.scores["methods"].items()
        if values["collapse"] is not None
    ]
    return _section("runs", "Run by run", tables=[run_table(column) for column in columns], falls=falls)


def _fall_text(fall: Mapping[str, Any]) -> str:
    until = "to the end" if fall["to_the_end"] else f"until image {fall['until']:,}"
    where = f"falls behind at image {fall['at']:,} ({fall['step']}), {until}"
    return f"{where}, by {100 * fall['loss']:.1f} points at worst"


def _setting(columns: Sequence[ColumnScores], setting: Setting) -> Section:
    sources = {column.runs[0].run.of.name: column.runs[0].run.of for column in columns}
    rules = {
        name: f"{chosen.objective} paths, {chosen.ends} ends; {chosen.source or 'ours'}"
        for name, chosen in sources.items()
    }
    return _section("setting", "Walks and settings", table=walk_table(columns), rules=rules, lines=setting.lines)
