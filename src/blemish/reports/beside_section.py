"""The section of a page that lays a model's curves beside those of people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blemish.core.statistics import Estimate
from blemish.reports.beside_tables import beside_tables
from blemish.reports.charts import curve
from blemish.reports.page import Chart, Section
from blemish.reports.reading import Reading

_PEOPLE = "people"


def beside_sections(readings: Sequence[Reading]) -> Iterator[Section]:
    """Errors of models and of people at each level, and all tables; nothing where nothing is published."""
    tables = beside_tables(readings)
    if not tables:
        return
    charts = list(_charts(readings))
    data = {
        # In the colours of the page: people come after the last model.
        "names": [*(reading.name for reading in readings), _PEOPLE],
        "tables": tables,
        "charts": charts,
    }
    template = "reports/templates/beside.html.j2"
    yield Section("beside", "Beside published accuracies", template, data, "Published")


def _charts(readings: Sequence[Reading]) -> Iterator[Chart]:
    sides = [(reading, reading.scores.beside) for reading in readings if reading.scores.beside is not None]
    corruptions = dict.fromkeys(s.corruption for _, each in sides if each is not None for s in each.stimuli)
    for index, corruption in enumerate(corruptions):
        lines: list[tuple[str, int, dict[float, Estimate]]] = []
        people: dict[float, Estimate] = {}
        for reading, each in sides:
            for stimulus in each.stimuli if each is not None else ():
                if stimulus.corruption == corruption:
                    models = {item.level.severity: item.model for item in stimulus.levels}
                    points = {level: _error(model) for level, model in models.items() if model is not None}
                    lines.append((reading.name, reading.number, points))
                    people = {item.level.severity: _error(item.people) for item in stimulus.levels}
        if len(people) > 2:
            lines.append((_PEOPLE, len(readings), people))
            yield curve(f"beside-{index}", corruption.rpartition(":")[2].replace("_", " "), lines)


def _error(accuracy: Estimate) -> Estimate:
    return Estimate(100 - accuracy.value, 100 - accuracy.high, 100 - accuracy.low)
