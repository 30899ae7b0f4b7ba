"""The sections of runs that are told by a number besides the error: a score, AP or mIoU, the larger the better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from blemish.core.statistics import Estimate
from blemish.metrics.scored import Score
from blemish.metrics.titles import TITLES
from blemish.reports import score_tables
from blemish.reports.charts import bars, curve
from blemish.reports.page import Chart, Section
from blemish.reports.reading import Reading, column_of
from blemish.reports.score_cards import HeatCell, HeatRow
from blemish.reports.score_tables import cell, value_text

_RATIOS = ("rpc", "cd", "rcd")
_FULL = 100.0


def quantity_sections(readings: Sequence[Reading]) -> Iterator[Section]:
    """By corruption and severity, as curves, and by family; a set of them for each quantity."""
    for quantity in dict.fromkeys(reading.quantity for reading in readings if reading.groups):
        own = [reading for reading in readings if reading.groups and reading.quantity == quantity]
        yield from _sections(quantity, own)


def _sections(quantity: str, readings: Sequence[Reading]) -> Iterator[Section]:
    title, names = TITLES[quantity].title, [reading.name for reading in readings]
    heading = f"{title[0].upper()}{title[1:]} by corruption and severity"
    folder = "reports/templates/quantity"
    yield Section(
        f"{quantity}-corruptions",
        heading,
        f"{folder}.html.j2",
        {"maps": [_map(reading) for reading in readings], "charts": []},
        "Corruptions",
        [],
    )
    if curves := list(_curves(quantity, readings)):
        data: dict[str, object] = {"names": names, "title": title, "unit": TITLES[quantity].unit, "charts": curves}
        yield Section(f"{quantity}-curves", "Severity curves", f"{folder}_curves.html.j2", data, "Curves", curves)
    if (table := score_tables.family_table(readings)) is not None:
        charts = [_bars(quantity, readings, [row[0].text for row in table.rows])]
        more: dict[str, object] = {"names": names, "title": title, "table": table, "charts": charts}
        yield Section(f"{quantity}-families", "Families", f"{folder}_families.html.j2", more, "", charts)


def _map(reading: Reading) -> dict[str, object]:
    """A coloured table of one model: the paler, the better."""
    name, title = reading.quantity, TITLES[reading.quantity]
    more = [ratio for ratio in _RATIOS if any(reading.get(ratio, "corruption", group) for group in reading.groups)]
    clean = cell(name, reading.get(name, "condition", "clean"))
    return {
        "name": reading.name,
        "caption": f"{title.title}{f' in {title.unit}' if title.unit else ''}; the stronger the colour, the worse. "
        f"Clean: {f'{clean} {title.unit}'.rstrip()}.",
        "heads": [*reading.columns, "mean", *(TITLES[ratio].title for ratio in more)],
        "families": {
            family: [_row(reading, group, more) for group in groups] for family, groups in reading.by_family.items()
        },
    }


def _row(reading: Reading, group: str, more: Sequence[str]) -> HeatRow:
    name = reading.quantity
    by_column = dict(zip(_columns(reading, group), reading.groups[group], strict=True))
    cells = [
        _heat(name, reading.get(name, "condition", str(by_column[column]))) if column in by_column else HeatCell()
        for column in reading.columns
    ]
    ratios = [str(cell(ratio, reading.get(ratio, "corruption", group))) for ratio in more]
    return HeatRow(group.replace("_", " "), cells, _heat(name, reading.get(name, "corruption", group)), ratios)


def _columns(reading: Reading, group: str) -> list[str]:
    return [column_of(condition) for condition in reading.groups[group]]


def _heat(name: str, shown: Score | None) -> HeatCell:
    if shown is None:
        return HeatCell("–", "not measured")
    value, low, high = (value_text(name, end) for end in _ends(shown.estimate))
    text, ends = f"{value}{'†' if shown.trained_on else ''}", f"{value} ({low} to {high})"
    share = shown.estimate.value / TITLES[name].scale
    # Scores without bounds have no colour: nobody knows what is good.
    return HeatCell(text, ends, _FULL * (1 - share) if 0 <= share <= 1 else None)


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def _curves(quantity: str, readings: Sequence[Reading]) -> Iterator[Chart]:
    groups = list(dict.fromkeys(group for reading in readings for group in reading.groups))
    lines = {group: [(r.name, r.number, p) for r in readings if len(p := _points(r, group)) > 2] for group in groups}
    values = [e.high for own in lines.values() for _, _, points in own for e in points.values()]
    top = max(values, default=1.0)
    top = TITLES[quantity].scale if top <= TITLES[quantity].scale else top
    for index, group in enumerate(groups):
        if lines[group]:
            chart = curve(f"{quantity}-curve-{index}", group.replace("_", " "), lines[group], top=top)
            yield _named(chart, quantity)


def _named(chart: Chart, quantity: str) -> Chart:
    """A chart of errors as one of this quantity."""
    title = TITLES[quantity]
    named = f"{title.title}{f' in {title.unit}' if title.unit else ''}"
    words = chart.description.replace("Error in per cent", named, 1)
    digits = ".1f" if title.scale == _FULL else ".3f"
    hover = f"%{{fullData.name}}: %{{y:{digits}}} {title.unit} at severity %{{x}}<extra></extra>"
    lowest = min((low for line in chart.data for low in _lows(line)), default=0.0)
    axis = chart.layout["yaxis"]
    if lowest < 0:  # rewards may be
        axis = {"range": [1.03 * lowest, axis["range"][1]]}
    return replace(
        chart,
        layout={**chart.layout, "yaxis": axis},
        description=words,
        data=[{**line, "hovertemplate": hover} for line in chart.data],
    )


def _lows(line: dict[str, Any]) -> list[float]:
    return [value - below for value, below in zip(line["y"], line["error_y"]["arrayminus"], strict=True)]


def _points(reading: Reading, group: str) -> dict[float, Estimate]:
    """The quantity by severity; clean images are severity 0."""
    name = reading.quantity
    clean = reading.get(name, "condition", "clean")
    points = {0.0: clean.estimate} if clean else {}
    for condition in reading.groups.get(group, ()):
        score = reading.get(name, "condition", str(condition))
        if score is not None and condition.severity is not None:
            points[condition.severity] = score.estimate
    return points


def _bars(quantity: str, readings: Sequence[Reading], families: Sequence[str]) -> Chart:
    models = {
        r.name: [f.estimate if (f := r.get(quantity, "family", name)) else None for name in families] for r in readings
    }
    title = TITLES[quantity]
    chart = bars(f"{quantity}-families-chart", f"Mean {title.title} by family", families, models)
    digits = ".1f" if title.scale == _FULL else ".3f"
    hover = f"%{{fullData.name}}, %{{y}}: %{{x:{digits}}} {title.unit}<extra></extra>"
    axis = {**chart.layout["xaxis"], "ticksuffix": f" {title.unit}" if title.unit else ""}
    data = [{**line, "hovertemplate": hover} for line in chart.data]
    return replace(chart, data=data, layout={**chart.layout, "xaxis": axis})
