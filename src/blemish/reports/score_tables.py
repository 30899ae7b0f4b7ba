"""The scores of one or several models as tables that people read."""

from __future__ import annotations

from collections.abc import Sequence

from blemish.core.printable import first_few
from blemish.metrics.maker import Missing
from blemish.metrics.quantities import QUANTITIES
from blemish.metrics.scored import Score
from blemish.metrics.titles import SUMMARY, TITLES, Part, Scope, both_names
from blemish.reports.reading import (
    Reading,
    baseline_note,
    benchmark_notes,
    benchmark_title,
    column_of,
    differences,
    firsts,
    title_of,
    titles_of,
)
from blemish.reports.tables import NOTHING, Cell, Table, number
from blemish.reports.wording import PLAIN, Wording

_GROUP_METRICS = (
    *("score", "miou", "pixel_accuracy", "ap", "ap50", "ap75", "rpc", "cd", "rcd"),
    *("error", "ce", "relative_ce", "balanced_error", "be", "relative_be", "robustness", "residual", "ece"),
)
# Calibration has a table of its own.
_SUMMARY = both_names(name for name in SUMMARY if name != "ece")
_SEQUENCE_METRICS = ("flips", "fr", "ut5d", "t5d", "zipf")
_SHORT = {
    "score": "mean",
    "miou": "mean",
    "pixel_accuracy": "pixels",
    "ap": "mean",
    "ap50": "AP50",
    "ap75": "AP75",
    "rpc": "rPC",
    "cd": "CD",
    "rcd": "rCD",
    "error": "mean",
    "ce": "CE",
    "relative_ce": "relative CE",
    "balanced_error": "balanced",
    "be": "BE",
    "relative_be": "relative BE",
    "robustness": "R",
    "residual": "residual",
    "ece": "ECE",
}
_QUANTITIES = tuple(quantity.name for quantity in QUANTITIES)
_FEW = 4


def value_text(name: str, value: float) -> str:
    """A number of a metric with as many digits as it deserves."""
    return number(value, 1 if TITLES[name].scale == 100 else 3)


def signed(name: str, value: float) -> str:
    """A difference with its sign."""
    text = value_text(name, value)
    return text if text.startswith("−") or not float(text) else f"+{text}"


def cell(name: str, shown: Score | None) -> Cell:
    """A number alone."""
    return NOTHING if shown is None else Cell(value_text(name, shown.estimate.value), shown.trained_on)


def with_interval(name: str, shown: Score | None) -> Cell:
    """A number and its interval in brackets."""
    if shown is None:
        return NOTHING
    estimate = shown.estimate
    value, low, high = (value_text(name, end) for end in (estimate.value, estimate.low, estimate.high))
    return Cell(value, shown.trained_on, f"{low}, {high}")


def score_tables(readings: Sequence[Reading]) -> list[Table]:
    """Everything there is to read, in the order of importance; tables without numbers are left out."""
    tables = [summary_table(readings), *(corruption_table(reading) for reading in readings)]
    tables += [family_table(readings), calibration_table(readings), sequence_table(readings), natural_table(readings)]
    tables += [missing_table(readings)]
    return [table for table in tables if table is not None]


def summary_table(readings: Sequence[Reading], *, remarks: bool = True, wording: Wording = PLAIN) -> Table:
    """What sums up the benchmark, the headline first: a column for each of a few models, or a row for each of many."""
    headlines = list(dict.fromkeys((reading.metric, reading.part) for reading in readings))
    others = [
        (name, part)
        for name in _SUMMARY
        for part in dict.fromkeys(reading.part for reading in readings if reading.get(name, "benchmark"))
        if (name, part) not in headlines
    ]
    # The title of the table says which part it is about, unless there are several.
    mixed = len({reading.part for reading in readings}) > 1
    lines = [
        (
            Cell(wording(name, benchmark_title(name, part if number < len(headlines) or mixed else None))),
            *_row(name, part, readings),
        )
        for number, (name, part) in enumerate((*headlines, *others))
    ]
    always = {reading.quantity for reading in readings}
    names = [name for name in (*_QUANTITIES, "error", "balanced_error") if name in always or name == "balanced_error"]
    for line, name in enumerate(names, start=len(headlines)):
        clean = [reading.get(name, "condition", "clean") for reading in readings]
        if name in always or any(clean):
            cells = (with_interval(name, score) for score in clean)
            lines.insert(line, (Cell(wording(name, f"clean {title_of(name)}")), *cells))
    grid = [(Cell("metric"), *(Cell(reading.name) for reading in readings)), *lines]
    if len(readings) > _FEW:
        grid = [(Cell("model"), *row[1:]) if index == 0 else row for index, row in enumerate(zip(*grid, strict=True))]
    notes = [f"In brackets: the {100 * readings[0].scores.level:g} % interval of the bootstrap over images."]
    notes += filter(None, [baseline_note(readings)])
    notes += benchmark_notes(readings)
    if remarks:
        notes += dict.fromkeys(remark for reading in readings for remark in reading.scores.remarks)
        notes += _protocol_notes(readings)
    return Table(titles_of(readings), tuple(cell.text for cell in grid[0]), tuple(grid[1:]), notes=tuple(notes))


def _protocol_notes(readings: Sequence[Reading]) -> list[str]:
    """Whose numbers are not comparable with the first model's, and why."""
    return [
        f"{first.name} and {reading.name} were not measured in the same way: {'; '.join(unlike)}."
        for first, reading, unlike in zip(firsts(readings), readings, differences(readings), strict=True)
        if unlike
    ]


def _row(name: str, part: Part | None, readings: Sequence[Reading]) -> list[Cell]:
    """A mean of each model; those over another part of the benchmark are other numbers."""
    return [
        with_interval(name, reading.get(name, "benchmark") if reading.part == part else None) for reading in readings
    ]


def corruption_table(reading: Reading) -> Table | None:
    """A row per corruption: the error at each severity, and the metrics of the corruption as a whole."""
    if not reading.groups:
        return None
    columns, shown = reading.columns, reading.quantity
    metrics = [name for name in _GROUP_METRICS if any(reading.get(name, "corruption", g) for g in reading.groups)]
    rows = []
    for group, members in reading.groups.items():
        by_column = {column_of(condition): condition for condition in members}
        levels = [
            cell(shown, reading.get(shown, "condition", str(by_column[column]))) if column in by_column else NOTHING
            for column in columns
        ]
        wholes = [
            (with_interval if name == metrics[0] else cell)(name, reading.get(name, "corruption", group))
            for name in metrics
        ]
        rows.append((Cell(reading.row_title(group)), *levels, *wholes))
    heads = ("corruption", *columns, *(_SHORT[name] for name in metrics))
    unit = TITLES[shown].unit
    title = f"{reading.name}: {TITLES[shown].title} by corruption{' and severity' if columns else ''}"
    title += f", {unit}" if unit else ""
    return Table(title, heads, tuple(rows))


def family_table(readings: Sequence[Reading]) -> Table | None:
    """A row per family of corruptions, a column per model."""
    families = list(dict.fromkeys(family for reading in readings for family in reading.by_family))
    if not families:
        return None
    shown = readings[0].quantity
    rows = tuple(
        (Cell(family), *(with_interval(shown, reading.get(shown, "family", family)) for reading in readings))
        for family in families
    )
    unit = f", {TITLES[shown].unit}" if TITLES[shown].unit else ""
    return Table(
        f"Mean {TITLES[shown].title} by family{unit}", ("family", *(reading.name for reading in readings)), rows
    )


def calibration_table(readings: Sequence[Reading], *, wording: Wording = PLAIN) -> Table | None:
    """Whether confidences can be believed, on clean and on corrupted images."""
    rows = []
    for reading in readings:
        pools: tuple[tuple[str, Scope, str], ...] = (("clean", "condition", "clean"), ("corrupted", "benchmark", ""))
        for images, scope, of in pools:
            scores = [reading.get(name, scope, of) for name in ("accuracy", "confidence", "ece")]
            if any(scores[1:]):
                cells = [cell(*pair) for pair in zip(("accuracy", "confidence"), scores[:2], strict=True)]
                rows.append((Cell(reading.name), Cell(images), *cells, with_interval("ece", scores[2])))
    if not rows:
        return None
    columns = ("model", "images", wording("accuracy", "accuracy, %"), "mean confidence, %", wording("ece", "ECE, %"))
    return Table("Calibration", columns, tuple(rows), text_columns=2)


def sequence_table(readings: Sequence[Reading], *, wording: Wording = PLAIN) -> Table | None:
    """A row per sequence and model: how often predictions flip, and how far rankings move."""
    names = list(dict.fromkeys(name for reading in readings for name in reading.sequences))
    metrics = [m for m in _SEQUENCE_METRICS if any(r.get(m, "sequence", n) for r in readings for n in names)]
    if not metrics:
        return None
    rows = []
    for name in names:
        for reading in readings:
            cells = [with_interval(metric, reading.get(metric, "sequence", name)) for metric in metrics]
            rows.append((Cell(name), Cell(reading.name), *cells))
    columns = ("sequence", "model", *(wording(metric, title_of(metric)) for metric in metrics))
    return Table("Stability along perturbation sequences", columns, tuple(rows), text_columns=2)


def natural_table(readings: Sequence[Reading], *, wording: Wording = PLAIN) -> Table | None:
    """A row per natural set and model: accuracy there, and on the clean images of the same classes."""
    rows = []
    for name in dict.fromkeys(name for reading in readings for name in reading.natural):
        for reading in readings:
            natural = reading.get("accuracy", "natural", f"natural:{name}")
            clean = reading.get("accuracy", "natural", f"clean:{name}")
            gap = reading.get("natural_gap", "natural", f"natural:{name}")
            if natural or clean or gap:
                cells = (with_interval("accuracy", natural), with_interval("accuracy", clean))
                rows.append((Cell(name), Cell(reading.name), *cells, with_interval("natural_gap", gap)))
    if not rows:
        return None
    heads = {"accuracy": ("accuracy there, %", "on clean images of its classes, %"), "natural_gap": ("gap, points",)}
    columns = ("set", "model", *(wording(name, text) for name, texts in heads.items() for text in texts))
    return Table("Natural sets", columns, tuple(rows), text_columns=2)


def _missing_names(missing: Missing, part: Part | None) -> str:
    if not missing.of:
        return ", ".join(benchmark_title(name, part, unit=False) for name in missing.names)
    return ", ".join(title_of(name, unit=False) for name in missing.names)


def _lost(reading: Reading) -> list[tuple[str, str]]:
    """What could not be computed of a model, and why; a few stand for many that lack the same for the same reason."""
    lines: dict[tuple[str, str], list[str]] = {}
    for missing in reading.scores.missing:
        names = _missing_names(missing, reading.part)
        why = "no records" if missing.of and missing.why == f"no records of {missing.of}" else missing.why
        lines.setdefault((names, why), []).append(missing.of)
    return [(f"{names} of {first_few(of, _FEW)}" if of[0] else names, why) for (names, why), of in lines.items()]


def missing_table(readings: Sequence[Reading]) -> Table | None:
    """What could not be computed, why, and of which models."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for reading in readings:
        for what, why in _lost(reading):
            reasons.setdefault((what, why), []).append(reading.name)
    if not reasons:
        return None
    every = len(readings) > 1
    rows = tuple(
        (Cell(what), Cell("all models" if every and len(models) == len(readings) else ", ".join(models)), Cell(why))
        for (what, why), models in reasons.items()
    )
    return Table("What could not be computed", ("metric", "model", "why"), rows, text_columns=3)
