"""The section on calibration: reliability diagrams of clean and of corrupted images, and the same as tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blemish.metrics.calibration import Reliability, pooled
from blemish.reports import html_charts as charts
from blemish.reports.html_page import Page
from blemish.reports.html_parts import folded, legend
from blemish.reports.html_scores import html_table
from blemish.reports.markup import element
from blemish.reports.reading import Reading
from blemish.reports.score_tables import calibration_table
from blemish.reports.tables import Cell, Table, number

__all__ = ["calibration_section"]

_WORDS = (
    "A model that says 80 % should be right four times in five: on the dotted diagonal. Below it, the model is more "
    "confident than right. Larger marks hold more answers. The ECE of corrupted images is the mean over corruptions; "
    "in the diagram, where all are together, too much confidence under one can hide too little under another."
)


def _pools(reading: Reading) -> list[tuple[str, Reliability]]:
    """Clean images, and all corrupted ones together."""
    known = reading.scores.reliability
    corrupted = [str(c) for members in reading.groups.values() for c in members if str(c) in known]
    found = [("clean", known["clean"])] if "clean" in known else []
    return found + ([("corrupted", pooled([known[text] for text in corrupted]))] if corrupted else [])


def _bins_table(readings: Sequence[Reading]) -> Table:
    rows = []
    for reading in readings:
        for what, bins in _pools(reading):
            for place in np.flatnonzero(bins.counts).tolist():
                edges = f"{number(100 * bins.edges[place], 0)}–{number(100 * bins.edges[place + 1], 0)}"
                rates = (number(100 * bins.confidence[place]), number(100 * bins.accuracy[place]))
                texts = (reading.name, what, edges, *rates, f"{bins.counts[place]:,}")
                rows.append(tuple(Cell(text) for text in texts))
    columns = ("model", "images", "confidence bin, %", "mean confidence, %", "accuracy, %", "answers")
    return Table("Reliability by confidence", columns, tuple(rows), text_columns=3)


def calibration_section(page: Page, readings: Sequence[Reading]) -> None:
    """Diagrams side by side, and their numbers."""
    table = calibration_table(readings)
    if table is None:
        return
    figures = []
    for reading in readings:
        lines = [(what, place, bins) for place, (what, bins) in enumerate(_pools(reading))]
        figures.append(page.chart(charts.reliability_chart(f"reliability-{reading.place}", reading.name, lines)))
    page.add(
        "calibration",
        "Calibration",
        element("p", _WORDS),
        legend(["clean images", "corrupted images, all together"]),
        element("div", figures, class_="plots roomy"),
        html_table(table, caption=False),
        folded("The diagrams as a table", html_table(_bins_table(readings), caption=False)),
    )
