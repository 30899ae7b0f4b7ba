"""The equivalence of two sets as a page: verdicts, gaps drawn against their margin, statistics and pictures."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from blemish.core.files import write_bytes
from blemish.reports.examples import Picture, condition_label, inline_picture
from blemish.reports.html import check_report_path
from blemish.reports.page import ALL_INSIDE, Page, Section, render_page
from blemish.reports.tables import number
from blemish.studies.equivalence.compare_sets import Cell, Contrast, Equivalence
from blemish.studies.equivalence.tables import (
    count_text,
    difference_text,
    rests_on,
    statistics_table,
    storage_order,
)
from blemish.studies.equivalence.verdicts import Verdict, overall
from blemish.version import VERSION

_SHOWN = 24
_WIDTH = 150


def write_equivalence(result: Equivalence, path: str | os.PathLike[str], *, warnings: Sequence[str] = ()) -> Path:
    """Write the page; the file is complete or not there."""
    target = check_report_path(path)
    write_bytes(target, equivalence_page(result, warnings=warnings).encode("utf-8"))
    return target


def equivalence_page(result: Equivalence, *, warnings: Sequence[str] = ()) -> str:
    """The whole page as text; it draws its charts itself and needs no library."""
    sections = [_section("verdict", "Verdict", result, cards=_cards(result), rests_on=rests_on(result))]
    if result.model is not None:
        sections.append(_section("accuracy", "Accuracy by cell", result, rows=_accuracy_rows(result)))
    details = [(storage, statistics_table(result, storage)) for storage in storage_order(result)]
    sections += [
        _section("images", "Image statistics by cell", result, rows=_statistics_rows(result), details=details),
        _section(
            "pictures",
            "Side by side",
            result,
            pictures=[_pictures(cell, result) for cell in _shown_cells(result)],
        ),
    ]
    texts = list(warnings)
    if result.skipped:
        shown = ", ".join(result.skipped[:6]) + (" …" if len(result.skipped) > 6 else "")
        texts.append(f"Not compared, because they cannot be made here: {shown} ({len(result.skipped)} in all).")
    preset = "by image size" if result.preset is None else result.preset
    page = Page(
        title=f"Equivalence: blemish and {result.theirs}",
        kicker="Equivalence report",
        heading=f"blemish on the fly against {result.theirs}",
        lead=f"{len(result.cells)} cells on {result.images:,} images of {result.data}; severities: {preset}; "
        f"seed {result.seed}{f'; accuracy of {result.model}' if result.model else ''}.",
        warnings=texts,
        sections=sections,
        footer=f"Made by blemish {VERSION}. {ALL_INSIDE}",
    )
    return render_page(page)


def _section(identity: str, title: str, result: Equivalence, **data: Any) -> Section:
    template = f"studies/equivalence/templates/{identity}.html.j2"
    return Section(identity, title, template, {"found": result, "order": storage_order(result), **data})


def _cards(result: Equivalence) -> list[tuple[str, list[tuple[str, str, Verdict]]]]:
    """For each way to store ours, what was judged, why, and the verdict."""
    cards = []
    for storage in storage_order(result):
        images = result.verdicts("images", storage)
        lines = [("images", count_text(images), overall(images))]
        if result.model is not None:
            cells, mean = result.verdicts("accuracy", storage), result.mean[storage]
            lines.append(("accuracy, each cell", count_text(cells), overall(cells)))
            lines.append(("accuracy, mean of cells", f"{difference_text(mean, 2)} points", mean.verdict))
        cards.append((storage, lines))
    return cards


def _accuracy_rows(result: Equivalence) -> list[dict[str, Any]]:
    first, second = storage_order(result)
    pairs = [(cell, _known(cell.sides[first].accuracy), _known(cell.sides[second].accuracy)) for cell in result.cells]
    ends = [abs(end) for _, ours, _ in pairs for end in (ours.difference.low, ours.difference.high)]
    # A few large gaps must not squeeze all others; bars that go on end at the edge.
    widest = min(max(2 * result.margin, *ends), 8 * result.margin)
    return [
        {
            "cell": str(cell.condition).replace("_", " "),
            "theirs": number(accuracy.theirs),
            "ours": number(accuracy.ours),
            "gap": difference_text(accuracy),
            "whisker": _whisker(accuracy, widest),
            "verdict": accuracy.verdict,
            "other_gap": difference_text(other),
            "other_verdict": other.verdict,
        }
        for cell, accuracy, other in pairs
    ]


def _known(accuracy: Contrast | None) -> Contrast:
    assert accuracy is not None
    return accuracy


def _whisker(item: Contrast, widest: float) -> Mapping[str, str]:
    """Where an interval and the margin's band lie, on an axis that all cells share, and the same in words."""

    def x(value: float) -> str:
        return f"{_WIDTH / 2 * (1 + max(-1.0, min(1.0, value / widest))):.1f}"

    interval, gap = item.difference, difference_text(item)
    return {
        "band": x(-item.margin),
        "band_width": f"{_WIDTH * item.margin / widest:.1f}",
        "zero": x(0),
        "low": x(interval.low),
        "high": x(interval.high),
        "value": x(interval.value),
        "text": f"{gap.text}, interval {gap.interval}, margin {item.margin:g}",
    }


def _statistics_rows(result: Equivalence) -> list[dict[str, Any]]:
    first, other = storage_order(result)
    return [
        {
            "cell": str(cell.condition).replace("_", " "),
            "verdict": cell.sides[first].images,
            "numbers": [
                (difference_text(item, 2), item.verdict is Verdict.DIFFERENT) for item in cell.sides[first].statistics
            ],
            "margin": number(cell.sides[first].statistics[0].margin, 2),
            "other_verdict": cell.sides[other].images,
        }
        for cell in result.cells
    ]


def _shown_cells(result: Equivalence) -> list[Cell]:
    """Cells that differ first, then for each corruption the one in the middle of its severities."""
    sides = [(cell, cell.sides[result.storage]) for cell in result.cells]
    worst = [cell for cell, side in sides if side.images is Verdict.DIFFERENT or _differs(side.accuracy)]
    groups: dict[str, list[Cell]] = {}
    for cell in result.cells:
        groups.setdefault(cell.condition.group, []).append(cell)
    strongest = {cell.condition.group: cell for cell in worst}
    chosen = {name: strongest.get(name, members[len(members) // 2]) for name, members in groups.items()}
    order = sorted(chosen, key=lambda name: name not in strongest)
    return [chosen[name] for name in order[:_SHOWN]]


def _differs(item: Contrast | None) -> bool:
    return item is not None and item.verdict is Verdict.DIFFERENT


def _pictures(cell: Cell, result: Equivalence) -> dict[str, Any]:
    """One image clean, as theirs and as ours, and their difference."""
    example, ours = cell.example, cell.example.ours[result.storage]
    shown = {"clean": example.clean, "theirs": example.theirs, "ours": ours}
    tiles = [(title, _picture(values, f"{example.name}: {title}")) for title, values in shown.items()]
    # Four times the difference, around a middle gray.
    apart = (128 + 4 * (ours.astype(np.int16) - example.theirs)).clip(0, 255).astype(np.uint8)
    tiles.append(("difference × 4", _picture(apart, "difference")))
    return {"title": condition_label(cell.condition), "verdict": cell.sides[result.storage].images, "tiles": tiles}


def _picture(values: NDArray[np.uint8], alt: str) -> Picture:
    return inline_picture(Image.fromarray(values[..., 0] if values.shape[-1] == 1 else values), alt)
