"""The numbers of the page: cards, heatmaps, and tables as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from blemish.metrics.scores import Score
from blemish.metrics.titles import TITLES, both_names
from blemish.reports.html_parts import scrolling
from blemish.reports.markup import Markup, element
from blemish.reports.reading import Reading, benchmark_title, column_of, title_of
from blemish.reports.score_tables import cell, with_interval
from blemish.reports.tables import DAGGER, FOOTNOTE, Cell, Table

__all__ = ["cards", "heatmap", "html_table"]

_CARD_LINES = both_names(
    ("error", "mce", "relative_mce", "robustness", "residual", "ece", "flips", "mfr", "natural_gap")
)


def html_table(table: Table, *, caption: bool = True) -> Markup:
    """A table whose first column heads its rows."""
    head = [
        element("th", column, scope="col", class_="text" if place < table.text_columns else None)
        for place, column in enumerate(table.columns)
    ]
    body = [
        element("tr", _heading(row[0], span), [_cell(table, place, row[place]) for place in range(1, len(row))])
        for row, span in zip(table.rows, _spans(table), strict=True)
    ]
    whole = element(
        "table",
        element("caption", table.title) if caption else None,
        element("thead", element("tr", head)),
        element("tbody", body),
    )
    notes = [element("p", note, class_="small quiet") for note in table.footnotes]
    return Markup(scrolling(whole, table.title) + "".join(notes))


def _spans(table: Table) -> list[int]:
    """Over how many rows each heading goes; 0 where the one above goes on."""
    names = [row[0].value for row in table.rows]
    if table.text_columns < 2:
        return [1] * len(names)
    starts = [place for place, name in enumerate(names) if place == 0 or names[place - 1] != name]
    ends = [*starts[1:], len(names)]
    lengths = {start: end - start for start, end in zip(starts, ends, strict=True)}
    return [lengths.get(place, 0) for place in range(len(names))]


def _heading(item: Cell, span: int) -> Markup | None:
    if span == 0:
        return None
    scope, rows = ("row", None) if span == 1 else ("rowgroup", span)
    return element("th", item.value, scope=scope, rowspan=rows, class_="head")


def _cell(table: Table, place: int, item: Cell) -> Markup:
    if place < table.text_columns:
        return element("td", str(item), class_="text wrap" if place == 2 else "text")
    return element("td", item.value, element("small", f" [{item.interval}]") if item.interval else None)


def cards(readings: Sequence[Reading]) -> Markup:
    """The headline of each model, with its interval, and what goes with it."""
    return element("div", [_card(reading) for reading in readings], class_="cards")


def _card(reading: Reading) -> Markup:
    name = reading.metric
    shown = reading.get(name, "benchmark")
    title, heading = TITLES[name], benchmark_title(name, reading.part, unit=False)
    if shown is None:
        number = element("p", "–", element("small", f" {heading}"), class_="number")
        interval = element("p", "could not be computed; see below", class_="interval")
    else:
        found = with_interval(name, shown)
        unit = f" {title.unit}" if title.unit else ""
        number = element("p", found.value, element("small", f"{unit} {heading}"), class_="number")
        better = "higher is better" if title.higher_is_better else "lower is better"
        ends = found.interval.replace(", ", " to ")
        interval = element("p", f"{ends} ({100 * reading.scores.level:g} % interval); {better}", class_="interval")
    lines = [("clean error", cell("error", reading.get("error", "condition", "clean")), "%")]
    for line in _CARD_LINES:
        other = reading.get(line, "benchmark")
        if other is not None and line != name:
            lines.append((benchmark_title(line, None, unit=False), cell(line, other), TITLES[line].unit))
    terms = [
        (element("dt", what), element("dd", str(value), f" {unit}" if unit else None)) for what, value, unit in lines
    ]
    return element(
        "article", element("h3", reading.name), number, interval, element("dl", terms), class_=f"card {reading.series}"
    )


def heatmap(reading: Reading) -> Markup:
    """Errors by corruption and severity: a table whose cells are coloured, so that it reads without colours too."""
    columns = reading.columns
    extra = [name for name in ("ce", "relative_ce") if any(reading.get(name, "corruption", g) for g in reading.groups)]
    heads = [*columns, "mean", *(title_of(name, unit=False) for name in extra)]
    head = element(
        "tr", element("th", "corruption", scope="col", class_="text"), [element("th", h, scope="col") for h in heads]
    )
    bodies = []
    for family, groups in reading.by_family.items():
        title = element(
            "tr", element("th", family, scope="rowgroup", colspan=len(heads) + 1, class_="text"), class_="family"
        )
        bodies.append(element("tbody", title, [_heat_row(reading, group, columns, extra) for group in groups]))
    clean = reading.get("error", "condition", "clean")
    caption = f"Error in %; the stronger the colour, the worse. Clean: {cell('error', clean)} %."
    table = element("table", element("caption", caption), element("thead", head), bodies, class_="heat")
    marked = any(item.trained_on for group in reading.groups if (item := reading.get("error", "corruption", group)))
    note = element("p", FOOTNOTE, class_="small quiet") if marked else None
    return element("div", element("h3", reading.name), scrolling(table, f"Errors of {reading.name}"), note)


def _heat_row(reading: Reading, group: str, columns: Sequence[str], extra: Sequence[str]) -> Markup:
    places = {column_of(condition): str(condition) for condition in reading.groups[group]}
    cells = [
        _heat(reading.get("error", "condition", places[column])) if column in places else element("td")
        for column in columns
    ]
    mean = _heat(reading.get("error", "corruption", group), style="cell mean")
    more = [element("td", str(cell(name, reading.get(name, "corruption", group)))) for name in extra]
    return element("tr", element("th", group.replace("_", " "), scope="row"), cells, mean, more)


def _heat(shown: Score | None, *, style: str = "cell") -> Markup:
    if shown is None:
        return element("td", "–", title="not measured")
    value, low, high = shown.estimate.value, shown.estimate.low, shown.estimate.high
    strong = " strong" if value >= 55 else ""
    return element(
        "td",
        f"{value:.0f}{DAGGER if shown.trained_on else ''}",
        class_=style + strong,
        style=f"--v:{max(0.0, min(100.0, value)):.1f}",
        title=f"{value:.1f} % ({low:.1f} to {high:.1f})",
    )
