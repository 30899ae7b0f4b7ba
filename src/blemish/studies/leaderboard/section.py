"""The section of a report that puts its models among the published ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.statistics import Estimate
from blemish.evaluation.runs import Run
from blemish.reports.page import ExtraSections, Section
from blemish.reports.tables import Cell, Table, estimate_cell, number
from blemish.studies.leaderboard.lines import TIERS
from blemish.studies.leaderboard.place import Placed, places_of

_NOTHING = "No published table that comes with blemish is of the benchmarks of these models."


def place_sections(
    runs: Sequence[Run], *, level: float = 0.95, replicates: int = 1000, report: ProgressReport = tell_nobody
) -> ExtraSections:
    """Where each model would stand among published ones, with its neighbours and what differs in protocol."""
    places, reasons = places_of(runs, level=level, replicates=replicates, report=report)
    parts = [_part(place) for place in places]
    if not parts and not reasons:
        reasons = [_NOTHING]
    data = {"parts": parts, "reasons": reasons}
    title = "Among published models"
    return ExtraSections([Section("place", title, "studies/leaderboard/templates/place.html.j2", data, "Place")])


def _part(place: Placed) -> dict[str, Any]:
    info = place.table.info
    own = (Cell(f"{place.run.name} (this run)"), estimate_cell(place.value))
    rows = (*_rows(place.above), own, *_rows(place.below))
    metric = "mCE" if info.metric == "mce" else "mean error" if info.cells is not None else "error"
    return {
        "heading": f"{place.run.name} among {info.title}",
        "tier": f"{info.tier}: {TIERS[info.tier]}",
        "words": (
            f"By its {metric} of {number(place.value.value)} % [{number(place.value.low)}, "
            f"{number(place.value.high)}] (lower is better), computed as theirs are, it would stand at rank "
            f"{place.rank} of {place.count}."
        ),
        "table": Table(f"Neighbours in {info.title}", ("model", f"{metric}, %"), rows),
        "differs": place.differs or ("Nothing that is known differs in protocol.",),
        "source": info.source,
    }


def _rows(models: Sequence[tuple[str, Estimate]]) -> list[tuple[Cell, Cell]]:
    return [(Cell(name), estimate_cell(value)) for name, value in models]
