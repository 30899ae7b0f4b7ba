"""One heatmap of all models and corruptions: a row for each corruption, a column for each model, the best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blemish.reports.page import Section
from blemish.reports.reading import Reading
from blemish.reports.score_cards import HeatCell, heat_cell
from blemish.reports.tables import FOOTNOTE


@dataclass(frozen=True)
class Overview:
    """Models as columns; rows of cells by family of corruptions, and those of clean images and of the mean."""

    models: list[Reading]
    families: dict[str, list[tuple[str, list[HeatCell]]]]
    wholes: list[tuple[str, list[HeatCell]]]
    footnote: str


def overview(readings: Sequence[Reading]) -> Overview | None:
    """The mean error of each model under each corruption; None where fewer than two have any."""
    models = [reading for reading in readings if reading.groups]
    if len(models) < 2:
        return None
    families: dict[str, list[str]] = {}
    for reading in models:
        for family, groups in reading.by_family.items():
            own = families.setdefault(family, [])
            own += [group for group in groups if group not in own]
    rows = {
        family: [(group, [heat_cell(model.get("error", "corruption", group)) for model in models]) for group in groups]
        for family, groups in families.items()
    }
    wholes = [
        ("clean images", [heat_cell(model.get("error", "condition", "clean")) for model in models]),
        ("mean of corruptions", [heat_cell(model.get("error", "benchmark")) for model in models]),
    ]
    marked = any(cell.is_marked for group in rows.values() for _, cells in group for cell in cells)
    return Overview(models, rows, wholes, FOOTNOTE if marked else "")


def overview_section(readings: Sequence[Reading]) -> Section | None:
    """The section with the heatmap; ``readings`` are in the order of the columns."""
    heatmap = overview(readings)
    if heatmap is None:
        return None
    path = "reports/templates/overview.html.j2"
    return Section("overview", "Models and corruptions", path, {"map": heatmap}, "Overview")
