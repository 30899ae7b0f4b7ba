"""The equivalence of two sets as tables that people read, and as CSV and JSON for other programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from blemish.benchmarks.benchmark import STORAGES
from blemish.core.csv_files import csv_text
from blemish.core.marks import MADE_WITH
from blemish.reports.tables import Cell, Table, estimate_cell, number, signed
from blemish.studies.equivalence.compare_sets import Contrast, Equivalence
from blemish.studies.equivalence.verdicts import FEWEST, Verdict, overall

TITLES = {
    "level": "mean level",
    "contrast": "contrast",
    "sharpness": "sharpness",
    "change": "change from clean",
    "distance": "distance beyond chance",
    "accuracy": "accuracy",
}
"""What a number is called."""


def difference_text(contrast: Contrast, digits: int = 1) -> Cell:
    """A difference with its interval."""
    return estimate_cell(contrast.difference, digits, write=signed)


def count_text(verdicts: list[Verdict]) -> str:
    """How many cells came to what.

    >>> count_text([Verdict.EQUIVALENT, Verdict.UNDECIDED, Verdict.EQUIVALENT])
    '2 equivalent, 1 undecided'
    """
    counts = {verdict: verdicts.count(verdict) for verdict in Verdict}
    return ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items() if count)


def summary_table(result: Equivalence) -> Table:
    """What it comes to, for both ways to store ours; the one that suits their set is named first."""
    rows = []
    for storage in storage_order(result):
        fair = " (as theirs)" if storage == result.storage else ""
        images = result.verdicts("images", storage)
        rows.append(_summary(f"{storage}{fair}", "images", overall(images).value, count_text(images)))
        if result.model is not None:
            cells, mean = result.verdicts("accuracy", storage), result.mean[storage]
            rows.append(_summary(f"{storage}{fair}", "accuracy, each cell", overall(cells).value, count_text(cells)))
            text = f"{difference_text(mean, 2)} points"
            rows.append(_summary(f"{storage}{fair}", "accuracy, mean of cells", mean.verdict.value, text))
    title = f"blemish on the fly against {result.theirs}, {result.images:,} images, {len(result.cells)} cells"
    return Table(
        title, ("ours stored", "of", "verdict", "because"), tuple(rows), text_columns=4, notes=rests_on(result)
    )


def _summary(*texts: str) -> tuple[Cell, ...]:
    return tuple(Cell(text) for text in texts)


def storage_order(result: Equivalence) -> list[str]:
    """Both ways to store ours, the one that suits their set first."""
    return [result.storage, *(storage for storage in STORAGES if storage != result.storage)]


def rests_on(result: Equivalence) -> tuple[str, ...]:
    """What the verdicts mean, in sentences."""
    level, count = f"{100 * result.level:g} %", len(result.cells)
    notes = [
        (
            f"Equivalent: the {level} interval over images lies within ± the margin. Different: the difference exceeds "
            f"the margin, and an interval widened for all {count} cells (Bonferroni) leaves out 0. Undecided: too few "
            "images. All cells have to be equivalent for the whole to be; one that is different makes it different."
        ),
        (
            "Images: mean level, contrast, sharpness, change from clean, and distance beyond that of two draws of "
            f"ours; the margin is {100 * result.tolerance:g} % of the change from clean, half a grey level at least. "
            "Same pixels: 99.5 % of values are at most one grey level apart. Copies that are nearer to ours than "
            "another draw of ours do not differ by distance; where all values are the same, all differences are 0."
        ),
    ]
    if result.model is not None:
        unit = "point" if result.margin == 1 else "points"
        notes.append(
            f"Accuracy of {result.model}: ours minus theirs, paired over images; the margin is "
            f"{result.margin:g} {unit}. In the mean of cells, gaps of both signs cancel."
        )
        if (needed := result.images_needed()) is not None and needed > result.images:
            notes.append(f"About {needed:,} images would decide half of the undecided cells by accuracy.")
    if result.images < FEWEST:
        notes.append(f"Intervals of image statistics need {FEWEST} images; here are {result.images}.")
    return tuple(notes)


def cell_table(result: Equivalence) -> Table:
    """A row per cell: the verdicts on images for both ways to store ours, and the numbers for the one that suits."""
    columns = ["cell", *(f"images, {storage}" for storage in storage_order(result))]
    names = [item.name for item in result.cells[0].sides[result.storage].statistics]
    rows = []
    for cell in result.cells:
        side = cell.sides[result.storage]
        verdicts = [Cell(cell.sides[storage].images.value) for storage in storage_order(result)]
        numbers = [difference_text(item, 2) for item in side.statistics]
        rows.append((Cell(str(cell.condition)), *verdicts, *numbers, Cell(number(side.statistics[0].margin, 2))))
    columns += [TITLES[name] for name in names] + ["margin"]
    note = f"Grey levels, ours stored as {result.storage} minus theirs."
    return Table("Image statistics: differences", tuple(columns), tuple(rows), notes=(note,))


def accuracy_table(result: Equivalence) -> Table | None:
    """A row per cell: accuracies, gaps and verdicts for both ways to store ours."""
    if result.model is None:
        return None
    columns = ["cell", "theirs, %"]
    for storage in storage_order(result):
        columns += [f"{storage}, %", "gap", "verdict"]
    rows = []
    for cell in result.cells:
        row = [Cell(str(cell.condition))]
        for column, storage in enumerate(storage_order(result)):
            accuracy = cell.sides[storage].accuracy
            assert accuracy is not None
            row += [] if column else [Cell(number(accuracy.theirs))]
            row += [Cell(number(accuracy.ours)), difference_text(accuracy), Cell(accuracy.verdict.value)]
        rows.append(tuple(row))
    return Table(f"Accuracy of {result.model}", tuple(columns), tuple(rows))


def statistics_table(result: Equivalence, storage: str) -> Table:
    """The statistics of both sets, a row per cell and statistic."""
    rows = []
    for cell in result.cells:
        for item in cell.sides[storage].statistics:
            values = (number(item.theirs, 2), number(item.ours, 2), number(item.margin, 2), item.verdict.value)
            theirs, ours, margin, verdict = map(Cell, values)
            row = (Cell(str(cell.condition)), Cell(TITLES[item.name]), theirs, ours, difference_text(item, 2))
            rows.append((*row, margin, verdict))
    note = (
        "Of the distance, “theirs” is between the sets, pixel by pixel, “ours” between two draws of ours (0 where the "
        "pixels are the same), and the difference is the first minus the second."
    )
    columns = ("cell", "statistic", "theirs", "ours", "difference", "margin", "verdict")
    return Table(f"Ours stored as {storage}", columns, tuple(rows), text_columns=2, notes=(note,))


def _rows(result: Equivalence) -> Iterator[dict[str, Any]]:
    for cell in result.cells:
        for storage, side in cell.sides.items():
            items = [*side.statistics, *([side.accuracy] if side.accuracy else [])]
            for item in items:
                yield {"cell": str(cell.condition), "storage": storage, **_entry(item)}
    for storage, item in result.mean.items():
        yield {"cell": "mean", "storage": storage, **_entry(item)}


def _entry(item: Contrast) -> dict[str, Any]:
    ends = [end if math.isfinite(end) else None for end in (item.difference.low, item.difference.high)]
    return {
        "quantity": item.name,
        "theirs": float(item.theirs),
        "ours": float(item.ours),
        "difference": float(item.difference.value),
        "low": ends[0],
        "high": ends[1],
        "margin": float(item.margin),
        "verdict": item.verdict.value,
    }


def equivalence_csv(result: Equivalence) -> str:
    """A row per number with all digits; grey levels, and percent for accuracies."""
    rows = list(_rows(result))
    return csv_text([rows[0], *(row.values() for row in rows)])


def equivalence_json(result: Equivalence) -> str:
    """Everything: the settings, the verdicts and all numbers."""
    names = ("theirs", "data", "images", "storage", "margin", "tolerance", "level", "seed", "preset", "model")
    entry: dict[str, Any] = {"made_with": MADE_WITH, **{name: getattr(result, name) for name in names}}
    entry["skipped"] = list(result.skipped)
    kinds = ("images", *(("accuracy",) if result.model is not None else ()))
    entry["verdicts"] = {
        storage: {kind: overall(result.verdicts(kind, storage)).value for kind in kinds} for storage in STORAGES
    }
    entry["cells"] = [
        {
            "cell": str(cell.condition),
            "images": {storage: side.images.value for storage, side in cell.sides.items()},
            "within_one_level": {storage: side.close for storage, side in cell.sides.items()},
        }
        for cell in result.cells
    ]
    entry["rows"] = list(_rows(result))
    return json.dumps(entry, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
