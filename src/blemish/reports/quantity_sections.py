"""The sections of runs that are told by a number besides the error: a score, AP or mIoU, the larger the better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from blemish.core.statistics import Estimate
from blemish.metrics.scored import Score
from blemish.metrics.titles import TITLES
from blemish.reports import score_tables
from blemish.reports.charts import Measured, curve, dots
from blemish.reports.page import Chart, Section
from blemish.reports.reading import Reading, column_of
from blemish.reports.score_cards import HeatCell, HeatRow
from blemish.reports.score_tables import cell, value_text
from blemish.reports.svg import nice_axis

_RATIOS = ("rpc", "cd", "rcd")
_FULL = 100.0


def quantity_sections(readings: Sequence[Reading]) -> Iterator[Section]:
    """By corruption and severity, as curves, and by family; a set of them for each quantity."""
    for quantity in dict.fromkeys(reading.quantity for reading in readings if reading.groups):
        own = [reading for reading in readings if reading.groups and reading.quantity == quantity]
        yield from _sections(quantity, own)


def _sections(quantity: str, readings: Sequence[Reading]) -> Iterator[Section]:
    title, names = TITLES[quantity].title, [reading.name for reading in readings]
    # mIoU stays as it is.
    heading = f"{title.capitalize() if title.islower() else title} by corruption and severity"
    folder = "reports/templates/quantity"
    yield Section(
        f"{quantity}-corruptions",
        heading,
        f"{folder}.html.j2",
        {"maps": [_map(reading) for reading in readings], "charts": []},
        "Corruptions",
    )
    if curves := list(_curves(quantity, readings)):
        data: dict[str, object] = {"names": names, "title": title, "unit": TITLES[quantity].unit, "charts": curves}
        yield Section(f"{quantity}-curves", "Severity curves", f"{folder}_curves.html.j2", data, "Curves")
    if (table := score_tables.family_table(readings)) is not None:
        charts = [_dots(quantity, readings, [row[0].text for row in table.rows])]
        more: dict[str, object] = {"names": names, "title": title, "table": table, "charts": charts}
        yield Section(f"{quantity}-families", "Families", f"{folder}_families.html.j2", more)


def _map(reading: Reading) -> dict[str, object]:
    """A coloured table of one model: the paler, the better."""
    name, title = reading.quantity, TITLES[reading.quantity]
    more = [ratio for ratio in _RATIOS if any(reading.get(ratio, "corruption", group) for group in reading.groups)]
    clean = cell(name, reading.get(name, "condition", "clean"))
    return {
        "reading": reading,
        "caption": f"{title.title}{f' in {title.unit}' if title.unit else ''}; higher is better, and the stronger the "
        f"colour, the worse. Clean: {f'{clean} {title.unit}'.rstrip()}.",
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
    title = reading.row_title(group).replace("_", " ")
    return HeatRow(title, cells, _heat(name, reading.get(name, "corruption", group)), ratios)


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
    shown = _measured(quantity, [e for own in lines.values() for _, _, points in own for e in points.values()])
    for index, group in enumerate(groups):
        if lines[group]:
            yield curve(f"{quantity}-curve-{index}", group.replace("_", " "), lines[group], shown)


def _measured(quantity: str, estimates: Sequence[Estimate]) -> Measured:
    """How a quantity is drawn: on an axis from 0 to all there is, unless some are beyond."""
    title = TITLES[quantity]
    ends = [end for estimate in estimates for end in (estimate.low, estimate.high)]
    lowest, highest = min([0.0, *ends]), max([title.scale, *ends])
    inside = (lowest, highest) == (0.0, title.scale)
    axis = None if inside and title.scale == _FULL else nice_axis(lowest, highest)
    return Measured(title.title, title.unit, "higher is better", axis)


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


def _dots(quantity: str, readings: Sequence[Reading], families: Sequence[str]) -> Chart:
    models = {
        r.name: [f.estimate if (f := r.get(quantity, "family", name)) else None for name in families] for r in readings
    }
    shown = _measured(quantity, [e for values in models.values() for e in values if e is not None])
    title = f"Mean {TITLES[quantity].title} by family"
    return dots(f"{quantity}-families-chart", title, families, models, shown)
