"""The perceptual axis as tables, and as CSV files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blemish.core.csv_files import csv_text
from blemish.core.statistics import Estimate
from blemish.corruptions.severity import severity_text
from blemish.reports.reading import column_of
from blemish.reports.tables import NOTHING, Cell, Table, number, percent_cell
from blemish.studies.perceptual.curves import Area, ErrorCurves
from blemish.studies.perceptual.distances import Distances, Measure


def distance_table(distances: Sequence[Distances], measure: Measure) -> Table:
    """A row per corruption: its mean distance at each severity."""
    columns = sorted(
        {column_of(item.condition): item.condition.severity for item in distances}.items(),
        key=lambda entry: (entry[1] is None, entry[1] or 0, entry[0]),
    )
    groups: dict[str, dict[str, Distances]] = {}
    for item in distances:
        groups.setdefault(item.condition.group, {})[column_of(item.condition)] = item
    rows = tuple(
        (
            Cell(group),
            *(Cell(number(members[c].mean(measure.name).value, 3)) if c in members else NOTHING for c, _ in columns),
        )
        for group, members in groups.items()
    )
    images = len(distances[0].values[measure.name])
    return Table(
        f"{measure.title} from the clean image, mean of {images} images",
        ("corruption", *(column for column, _ in columns)),
        rows,
    )


def corruption_table(curves: ErrorCurves) -> Table:
    """A row per corruption: from where to where it goes, and mean errors up to there and up to the common distance."""
    rows = tuple(
        (
            Cell(curve.corruption),
            Cell(number(curve.distances[1], 3)),
            Cell(number(curve.reach, 3)),
            percent_cell(own.error),
            percent_cell(common.error),
        )
        for curve, own, common in zip(curves.curves, curves.own, curves.common, strict=True)
    )
    heads = ("corruption", "begins", "reaches", "mean error up to there, %", f"up to {curves.common[0].up_to:g}, %")
    note = (
        "Begins, reaches: the smallest and the largest distance. Mean error: the area under error against distance, "
        "over the distance; linear from clean images to where a corruption begins, and none beyond where it ends."
    )
    return Table(f"{curves.model}: error against distance ({curves.measure})", heads, rows, notes=(note,))


def catalogue_table(models: Sequence[ErrorCurves]) -> Table:
    """A row per catalogue and model: the mean of the areas of those corruptions that reach the common distance."""
    rows = tuple(
        (
            Cell(area.of),
            Cell(curves.model),
            percent_cell(area.error),
            Cell(f"{area.corruptions} of {area.corruptions + area.left_out}"),
        )
        for name in dict.fromkeys(area.of for curves in models for area in curves.catalogues)
        for curves in models
        for area in curves.catalogues
        if area.of == name
    )
    up_to = models[0].common[0].up_to
    heads = ("catalogue", "model", f"mean error up to {up_to:g}, %", "corruptions that reach it")
    return Table(f"Error at the same distance ({models[0].measure})", heads, rows, text_columns=2)


def distances_csv(
    distances: Sequence[Distances], measures: Sequence[Measure], catalogue: Mapping[str, str], level: float
) -> str:
    """A row per condition and measure, with all digits."""
    rows: list[list[object]] = [
        ["condition", "corruption", "catalogue", "severity", "measure", "distance", "low", "high", "images"]
    ]
    for item in distances:
        condition = item.condition
        severity = None if condition.severity is None else severity_text(condition.severity)
        for measure in measures:
            mean = item.mean(measure.name, level=level)
            named = [str(condition), condition.group, catalogue[condition.group], severity, measure.name]
            # A single image has no interval.
            low, high = (None, None) if mean.count == 1 else (mean.low, mean.high)
            rows.append([*named, mean.value, low, high, mean.count])
    return csv_text(rows)


def errors_csv(models: Sequence[ErrorCurves]) -> str:
    """A row per model and point of a curve."""
    rows: list[list[object]] = [
        ["model", "measure", "corruption", "condition", "distance", "error_percent", "low", "high"]
    ]
    for curves in models:
        for curve in curves.curves:
            for condition, distance, error in zip(curve.conditions, curve.distances, curve.errors, strict=True):
                where = [curves.model, curves.measure, curve.corruption, str(condition), distance]
                rows.append([*where, *_numbers(error)])
    return csv_text(rows)


def areas_csv(models: Sequence[ErrorCurves]) -> str:
    """A row per model and area; those that are not reached have no number."""
    rows: list[list[object]] = [
        ["model", "measure", "scope", "of", "up_to", "mean_error_percent", "low", "high", "corruptions", "left_out"]
    ]
    for curves in models:
        scopes: tuple[tuple[str, Sequence[Area]], ...] = (
            ("corruption, own reach", curves.own),
            ("corruption", curves.common),
            ("catalogue", curves.catalogues),
        )
        for scope, areas in scopes:
            for area in areas:
                named = [curves.model, curves.measure, scope, area.of, area.up_to]
                rows.append([*named, *_numbers(area.error), area.corruptions, area.left_out])
    return csv_text(rows)


def _numbers(error: Estimate | None) -> list[object]:
    return [None] * 3 if error is None else [100 * error.value, 100 * error.low, 100 * error.high]
