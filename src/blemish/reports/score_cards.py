"""What the page shows of scores besides tables: a card for each model, and its errors as a coloured table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blemish.core.statistics import Estimate
from blemish.metrics.scored import Score
from blemish.metrics.titles import SUMMARY, TITLES, both_names
from blemish.reports.first_words import worst_words
from blemish.reports.reading import Reading, benchmark_title, column_of, title_of
from blemish.reports.score_tables import cell, with_interval
from blemish.reports.tables import DAGGER, FOOTNOTE
from blemish.reports.wording import PLAIN, Wording, direction

_RELATIVE = ("ce", "relative_ce", "be", "relative_be")
_CARD_LINES = both_names(name for name in SUMMARY if name not in ("ut5d", "mt5d", "zipf"))
_STRONG = 55


@dataclass(frozen=True)
class Card:
    """The headline of a model with its interval, and what goes with it."""

    reading: Reading
    number: str
    unit: str
    interval: str
    lines: list[tuple[str, str]]
    worst: str = ""
    """Where it fails most, in a sentence."""
    why: str = ""
    """Why its numbers mean nothing, if they do not."""


@dataclass(frozen=True)
class HeatCell:
    """An error in a coloured table: from 0 to 100, or None where it was not measured."""

    text: str = ""
    title: str = ""
    error: float | None = None
    is_marked: bool = False
    """Whether the model was trained on the corruption."""

    @property
    def is_strong(self) -> bool:
        """Whether its colour needs light letters."""
        return self.error is not None and self.error >= _STRONG


@dataclass(frozen=True)
class HeatRow:
    """A corruption: its errors by severity, their mean, and further numbers."""

    name: str
    cells: list[HeatCell]
    mean: HeatCell
    more: list[str]


@dataclass(frozen=True)
class Heatmap:
    """Errors by corruption and severity, for each family."""

    reading: Reading
    heads: list[str]
    families: dict[str, list[HeatRow]]
    clean: str
    footnote: str


def card(reading: Reading) -> Card:
    """The headline of a model, as far as it could be computed."""
    name = reading.metric
    shown = reading.get(name, "benchmark")
    title, wording = TITLES[name], Wording(reading.scores.baseline)
    heading = wording(name, benchmark_title(name, reading.part, unit=False))
    arrows = Wording(reading.scores.baseline, arrows=True)
    if shown is None:
        number, unit, interval = "–", f" {heading}", "could not be computed; see below"
    else:
        text = with_interval(name, shown)
        number, unit = text.value, f" {title.unit} {heading}" if title.unit else f" {heading}"
        interval = (
            f"{text.interval.replace(', ', ' to ')} ({100 * reading.scores.level:g} % interval); {direction(name)}"
        )
    each = TITLES[reading.quantity]
    clean = f"{cell(reading.quantity, reading.get(reading.quantity, 'condition', 'clean'))} {each.unit}".rstrip()
    lines = [(arrows(reading.quantity, f"clean {each.title}"), clean)]
    for line in _CARD_LINES:
        other = reading.get(line, "benchmark")
        if other is not None and line != name:
            value = f"{cell(line, other)} {TITLES[line].unit}".rstrip()
            lines.append((arrows(line, benchmark_title(line, None, unit=False)), value))
    said = reading.run.info.model.card
    why = f"{reading.scores.chance}. Its numbers mean nothing." if reading.scores.near_chance else ""
    worst = "" if why else worst_words(reading)
    return Card(reading, number, unit, interval, lines + ([] if said is None else said.lines), worst, why)


def curve_points(reading: Reading, group: str) -> dict[float, Estimate]:
    """Errors by severity; clean images are severity 0."""
    clean = reading.get("error", "condition", "clean")
    points = {0.0: clean.estimate} if clean else {}
    for condition in reading.groups.get(group, ()):
        score = reading.get("error", "condition", str(condition))
        if score is not None and condition.severity is not None:
            points[condition.severity] = score.estimate
    return points


def heatmap(reading: Reading, wording: Wording = PLAIN) -> Heatmap:
    """Errors by corruption and severity, and the metrics of corruptions as far as there are any."""
    more = [name for name in _RELATIVE if any(reading.get(name, "corruption", g) for g in reading.groups)]
    means = [reading.get("error", "corruption", group) for group in reading.groups]
    return Heatmap(
        reading,
        heads=[*reading.columns, "mean", *(wording(name, title_of(name, unit=False)) for name in more)],
        families={
            family: [_row(reading, group, more) for group in groups] for family, groups in reading.by_family.items()
        },
        clean=str(cell("error", reading.get("error", "condition", "clean"))),
        footnote=FOOTNOTE if any(score is not None and score.trained_on for score in means) else "",
    )


def _row(reading: Reading, group: str, more: Sequence[str]) -> HeatRow:
    conditions = {column_of(condition): str(condition) for condition in reading.groups[group]}
    return HeatRow(
        reading.row_title(group).replace("_", " "),
        [
            heat_cell(reading.get("error", "condition", conditions[column])) if column in conditions else HeatCell()
            for column in reading.columns
        ],
        heat_cell(reading.get("error", "corruption", group)),
        [str(cell(name, reading.get(name, "corruption", group))) for name in more],
    )


def heat_cell(shown: Score | None) -> HeatCell:
    """An error as a coloured cell."""
    if shown is None:
        return HeatCell("–", "not measured")
    value, low, high = shown.estimate.value, shown.estimate.low, shown.estimate.high
    text = f"{value:.0f}{DAGGER if shown.trained_on else ''}"
    return HeatCell(text, f"{value:.1f} % ({low:.1f} to {high:.1f})", value, shown.trained_on)
