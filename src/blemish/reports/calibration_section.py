"""The section on calibration: a reliability diagram for each model, and the expected calibration errors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from blemish.metrics.calibration import FEW, Reliability, pooled
from blemish.reports.charts import reliability_chart
from blemish.reports.material import Material, section
from blemish.reports.page import Chart, Section
from blemish.reports.reading import Reading
from blemish.reports.score_tables import calibration_table
from blemish.reports.tables import Cell, Table, number


def calibration_section(material: Material) -> Section | None:
    """None where no model has confidences."""
    readings = material.readings
    if (table := calibration_table(readings, wording=material.wording)) is None:
        return None
    charts = [_diagram(reading) for reading in material.ordered if reading.scores.reliability]
    return section("calibration", "Calibration", table=table, bins=_bins_table(readings), charts=charts, few=FEW)


def _pools(reading: Reading) -> list[tuple[str, Reliability]]:
    """Clean images, and all corrupted ones together."""
    known = reading.scores.reliability
    corrupted = [str(c) for members in reading.groups.values() for c in members if str(c) in known]
    pools = [("clean", known["clean"])] if "clean" in known else []
    return pools + ([("corrupted", pooled([known[text] for text in corrupted]))] if corrupted else [])


def _diagram(reading: Reading) -> Chart:
    lines = [(pool, series, bins) for series, (pool, bins) in enumerate(_pools(reading))]
    return reliability_chart(f"reliability-{reading.number}", reading.name, lines, model=reading.number)


def _bins_table(readings: Sequence[Reading]) -> Table:
    rows = []
    for reading in readings:
        for pool, bins in _pools(reading):
            for index in np.flatnonzero(bins.counts).tolist():
                edges = f"{number(100 * bins.edges[index], 0)}–{number(100 * bins.edges[index + 1], 0)}"
                rates = (number(100 * bins.confidence[index]), number(100 * bins.accuracy[index]))
                texts = (reading.name, pool, edges, *rates, f"{bins.counts[index]:,}")
                rows.append(tuple(Cell(text) for text in texts))
    columns = ("model", "images", "confidence bin, %", "mean confidence, %", "accuracy, %", "answers")
    return Table("Reliability by confidence", columns, tuple(rows), text_columns=3)
