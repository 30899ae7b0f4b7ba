"""Scores of sets as tables that people read: methods × sets, run by run, and the walks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from blemish.reports.tables import NOTHING, Cell, Table, number, percent_cell, signed
from blemish.studies.streams.set_scores import ColumnScores, MethodScores

INTERVALS = (
    "Means over all runs, in per cent. The intervals (95 %) are Student's over the seeds, each averaged over its "
    "speeds: runs of one seed meet the same corruptions in the same order, so that they count as one."
)


def _by_set(columns: Sequence[ColumnScores], title: str, cell: Callable[[MethodScores], Cell]) -> Table:
    """A row per method and a column per set; rows without a number are left out."""
    names = list(dict.fromkeys(name for column in columns for name in column.methods))
    everything = [
        (Cell(name), *(cell(column.methods[name]) if name in column.methods else NOTHING for column in columns))
        for name in names
    ]
    rows = [row for row in everything if any(each != NOTHING for each in row[1:])]
    return Table(title, ("method", *(column.column for column in columns)), tuple(rows))


def accuracy_table(columns: Sequence[ColumnScores]) -> Table:
    """Accuracy over all images."""
    runs = max(len(column.runs) for column in columns)
    title = f"Accuracy over all images, mean of {runs} run{'s' if runs > 1 else ''}"
    return _by_set(columns, title, lambda scores: percent_cell(scores.accuracy))


def gain_table(columns: Sequence[ColumnScores]) -> Table:
    """What each method gains on the model that is not adapted, run by run."""
    title = "Gain on the model that is not adapted, in points"
    return _by_set(columns, title, lambda scores: percent_cell(scores.gain, write=signed))


def window_table(column: ColumnScores) -> Table:
    """Least, mean and greatest windowed accuracy of each method, and in how many runs it collapsed."""
    window, runs = column.runs[0].scores["window"], len(column.runs)
    rows = tuple(
        (
            Cell(name),
            percent_cell(scores.minimum),
            percent_cell(scores.mean),
            percent_cell(scores.maximum),
            NOTHING if name == "none" else Cell(f"{scores.collapsed} of {runs}"),
        )
        for name, scores in column.methods.items()
    )
    title = f"{column.column}: accuracy over the last {window:,} images"
    return Table(title, ("method", "lowest", "mean", "highest", "runs with a collapse"), rows)


def run_table(column: ColumnScores) -> Table:
    """The accuracy of each method in each run."""
    runs = column.runs
    rows = tuple(
        (Cell(name), *(Cell(number(100 * run.scores["methods"][name]["accuracy"])) for run in runs))
        for name in column.methods
    )
    heads = tuple(f"{run.run.seed} · {run.run.speed:,}" for run in runs)
    return Table(f"{column.column}: accuracy of each run (seed · images a step)", ("method", *heads), rows)


def walk_table(columns: Sequence[ColumnScores]) -> Table:
    """What was walked, whether the target was held, and how severities jump between paths."""
    rows = []
    for column in columns:
        for run in column.runs:
            held, seams = run.scores.get("held"), run.scores["seams"]
            rows.append(
                (
                    Cell(column.column),
                    Cell(f"{run.run.seed} · {run.run.speed:,}"),
                    Cell(f"{run.scores['images']:,}"),
                    Cell(number(100 * run.run.target)),
                    NOTHING if held is None else Cell(number(100 * held["mean"])),
                    NOTHING if held is None else Cell(number(100 * held["deviation"])),
                    Cell(f"{seams['jumping']} of {seams['count']}"),
                    Cell(number(seams["mean"], 2)),
                    Cell(number(seams["largest"], 2)),
                )
            )
    heads = (
        "set",
        "seed · images a step",
        "images",
        "target, %",
        "not adapted, %",
        "off a step, points",
        "seams that jump",
        "mean jump",
        "largest jump",
    )
    return Table("Walks", heads, tuple(rows), text_columns=2)
