"""The equivalence of two sets as a page: verdicts, gaps drawn against their margin, statistics and pictures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from blemish.benchmarks.benchmark import STORAGES
from blemish.core.files import write_bytes
from blemish.reports.html import check_report_path, document
from blemish.reports.html_page import Page
from blemish.reports.html_parts import folded, scrolling
from blemish.reports.html_pictures import condition_label, inline_picture
from blemish.reports.html_scores import html_table
from blemish.reports.markup import Markup, element
from blemish.reports.tables import number
from blemish.studies.equivalence.compare_sets import Cell, Contrast, Equivalence
from blemish.studies.equivalence.tables import (
    count_text,
    difference_text,
    interval_text,
    rests_on,
    signed,
    statistics_table,
)
from blemish.studies.equivalence.verdicts import Verdict, overall
from blemish.version import VERSION

__all__ = ["equivalence_page", "write_equivalence"]

_SHOWN = 24
_WIDTH, _HEIGHT = 150, 16
_STYLES = {
    Verdict.SAME: "right",
    Verdict.EQUIVALENT: "right",
    Verdict.DIFFERENT: "wrong",
    Verdict.UNDECIDED: "quiet",
}
_SIGNS = {Verdict.SAME: "✓", Verdict.EQUIVALENT: "✓", Verdict.DIFFERENT: "✗", Verdict.UNDECIDED: "?"}


def write_equivalence(found: Equivalence, path: str | os.PathLike[str], *, warnings: Sequence[str] = ()) -> Path:
    """Write the page; the file is complete or not there."""
    target = check_report_path(path)
    write_bytes(target, equivalence_page(found, warnings=warnings).encode("utf-8"))
    return target


def equivalence_page(found: Equivalence, *, warnings: Sequence[str] = ()) -> str:
    """The whole page as text; it draws its charts itself and needs no library."""
    page = Page(f"Equivalence: blemish and {found.theirs}", _header(found, warnings), _footer())
    page.add("verdict", "Verdict", _cards(found), _rests(found))
    if found.model is not None:
        page.add("accuracy", "Accuracy by cell", element("p", _ACCURACY.format(found.model)), _accuracy(found))
    page.add("images", "Image statistics by cell", element("p", _IMAGES), _images(found), _folded(found))
    page.add("pictures", "Side by side", element("p", _pictures_text(found)), _pictures(found))
    return f"<!doctype html>\n{document(page, '')}\n"


_ACCURACY = (
    "Accuracy of {} on their images and on ours. The bar is the interval of the gap, ours less theirs; the band is the "
    "margin."
)
_IMAGES = (
    "Differences of the means, ours less theirs, in grey levels, with their intervals. Sharpness is the mean "
    "difference of neighbouring pixels. The last statistic is the distance between their copy and ours, less that "
    "between two draws of ours: near 0 where theirs could be another draw, below 0 where it is nearer than that."
)


def _header(found: Equivalence, warnings: Sequence[str]) -> Markup:
    texts = list(warnings)
    if found.skipped:
        shown = ", ".join(found.skipped[:6]) + (" …" if len(found.skipped) > 6 else "")
        texts.append(f"Not compared, because they cannot be made here: {shown} ({len(found.skipped)} in all).")
    notes = None
    if texts:
        items = element("ul", [element("li", text) for text in texts])
        notes = element("aside", element("h2", "Read this first"), items, class_="notes", aria_label="Warnings")
    preset = "by image size" if found.preset is None else found.preset
    lead = (
        f"{len(found.cells)} cells on {found.images:,} images of {found.data}; severities: {preset}; seed {found.seed}"
        f"{f'; accuracy of {found.model}' if found.model else ''}."
    )
    return element(
        "header",
        element("p", "Equivalence report", class_="quiet small kicker"),
        element("h1", f"blemish on the fly against {found.theirs}"),
        element("p", lead, class_="lead"),
        notes,
        class_="page",
    )


def _footer() -> Markup:
    return element("p", f"Made by blemish {VERSION}. The page holds all that it shows and loads nothing.")


def _said(verdict: Verdict) -> Markup:
    return element("span", f"{_SIGNS[verdict]} {verdict.value}", class_=_STYLES[verdict])


def _order(found: Equivalence) -> list[str]:
    return [found.storage, *(storage for storage in STORAGES if storage != found.storage)]


def _cards(found: Equivalence) -> Markup:
    return element("div", [_card(found, storage, place) for place, storage in enumerate(_order(found))], class_="cards")


def _card(found: Equivalence, storage: str, place: int) -> Markup:
    images = found.verdicts("images", storage)
    rows = [("images", _said(overall(images)), count_text(images))]
    if found.model is not None:
        cells, mean = found.verdicts("accuracy", storage), found.mean[storage]
        rows.append(("accuracy, each cell", _said(overall(cells)), count_text(cells)))
        rows.append(("accuracy, mean of cells", _said(mean.verdict), f"{difference_text(mean, 2)} points"))
    terms = [(element("dt", what, element("br"), text), element("dd", said)) for what, said, text in rows]
    fair = "as their files are stored" if storage == found.storage else "for comparison"
    heading = element("h3", f"Ours stored as {storage}", " ", element("span", fair, class_="quiet small"))
    return element("article", heading, element("dl", terms), class_=f"card s{place}")


def _rests(found: Equivalence) -> Markup:
    items = [element("li", text) for text in rests_on(found)]
    return element("div", element("h3", "What the verdicts rest on"), element("ul", items, class_="remarks"))


def _accuracy(found: Equivalence) -> Markup:
    order = _order(found)
    ends = [abs(end) for cell in found.cells for end in _ends(cell, order[0])]
    # A few large gaps must not squeeze all others; bars that go on end at the edge.
    widest = min(max(2 * found.margin, *ends), 8 * found.margin)
    head = [element("th", text, scope="col") for text in ("theirs, %", "ours, %", "gap, points", "", "verdict")]
    other = [element("th", f"{order[1]}: gap", scope="col"), element("th", "verdict", scope="col")]
    first = element("th", "cell", scope="col", class_="text")
    rows = []
    for cell in found.cells:
        accuracy, beside = (cell.sides[storage].accuracy for storage in order)
        assert accuracy is not None
        assert beside is not None
        cells = [
            element("td", number(accuracy.theirs)),
            element("td", number(accuracy.ours)),
            _gap(accuracy),
            element("td", _whisker(accuracy, widest)),
            element("td", _said(accuracy.verdict), class_="text"),
            _gap(beside),
            element("td", _said(beside.verdict), class_="text"),
        ]
        rows.append(element("tr", element("th", str(cell.condition).replace("_", " "), scope="row"), cells))
    caption = f"Ours stored as {order[0]}; beside it as {order[1]}."
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", first, head, other)),
        element("tbody", rows),
    )
    return scrolling(table, "Accuracy by cell")


def _ends(cell: Cell, storage: str) -> tuple[float, ...]:
    accuracy = cell.sides[storage].accuracy
    return () if accuracy is None else (accuracy.difference.low, accuracy.difference.high)


def _gap(item: Contrast, digits: int = 1) -> Markup:
    found = difference_text(item, digits)
    return element("td", found.value, element("small", f" [{found.interval}]") if found.interval else None)


def _whisker(item: Contrast, widest: float) -> Markup:
    """An interval against the margin's band, on an axis that all cells share."""

    def x(value: float) -> str:
        return f"{_WIDTH / 2 * (1 + max(-1.0, min(1.0, value / widest))):.1f}"

    found, middle = item.difference, f"{_HEIGHT / 2:g}"
    band = element(
        "rect",
        x=x(-item.margin),
        y="1",
        width=f"{_WIDTH * item.margin / widest:.1f}",
        height=str(_HEIGHT - 2),
        fill="var(--grid)",
    )
    zero = element("line", x1=x(0), y1="0", x2=x(0), y2=str(_HEIGHT), stroke="var(--rule)")
    bar = element(
        "line", x1=x(found.low), y1=middle, x2=x(found.high), y2=middle, stroke="currentColor", stroke_width="2"
    )
    dot = element("circle", cx=x(found.value), cy=middle, r="3", fill="currentColor")
    text = f"{signed(found.value, 1)}, interval {interval_text(found)}, margin {item.margin:g}"
    return element(
        "svg",
        band,
        zero,
        bar,
        dot,
        width=str(_WIDTH),
        height=str(_HEIGHT),
        role="img",
        aria_label=text,
        class_=_STYLES[item.verdict],
    )


def _images(found: Equivalence) -> Markup:
    """Verdicts and differences; those that are different stand out."""
    order = _order(found)
    texts = ("verdict", "mean level", "contrast", "sharpness", "change from clean", "distance", "margin ±")
    head = [element("th", text, scope="col") for text in (*texts, f"{order[1]}: verdict")]
    rows = []
    for cell in found.cells:
        side = cell.sides[order[0]]
        numbers = [
            element(
                "td",
                difference_text(item, 2).value,
                element("small", f" [{text}]") if (text := interval_text(item.difference, 2)) else None,
                class_="differs" if item.verdict is Verdict.DIFFERENT else None,
            )
            for item in side.statistics
        ]
        last = [
            element("td", number(side.statistics[0].margin, 2)),
            element("td", _said(cell.sides[order[1]].images), class_="text"),
        ]
        title = element("th", str(cell.condition).replace("_", " "), scope="row")
        rows.append(element("tr", title, element("td", _said(side.images), class_="text"), numbers, last))
    first = element("th", "cell", scope="col", class_="text")
    table = element(
        "table",
        element("caption", f"Ours stored as {order[0]}; the last column as {order[1]}."),
        element("thead", element("tr", first, head)),
        element("tbody", rows),
    )
    return scrolling(table, "Image statistics by cell")


def _folded(found: Equivalence) -> list[Markup]:
    return [
        folded(f"All statistics of both sets, ours stored as {storage}", html_table(statistics_table(found, storage)))
        for storage in _order(found)
    ]


def _shown_cells(found: Equivalence) -> list[Cell]:
    """Cells that differ first, then for each corruption the one in the middle of its severities."""
    sides = [(cell, cell.sides[found.storage]) for cell in found.cells]
    worst = [cell for cell, side in sides if side.images is Verdict.DIFFERENT or _differs(side.accuracy)]
    groups: dict[str, list[Cell]] = {}
    for cell in found.cells:
        groups.setdefault(cell.condition.group, []).append(cell)
    strongest = {cell.condition.group: cell for cell in worst}
    chosen = {name: strongest.get(name, members[len(members) // 2]) for name, members in groups.items()}
    order = sorted(chosen, key=lambda name: name not in strongest)
    return [chosen[name] for name in order[:_SHOWN]]


def _differs(item: Contrast | None) -> bool:
    return item is not None and item.verdict is Verdict.DIFFERENT


def _pictures_text(found: Equivalence) -> str:
    return (
        "One image under each corruption: clean, theirs, and ours. Corruptions that differ come first. Random draws "
        f"are not the same, so that noise, flakes and drops lie elsewhere. Ours are stored as {found.storage}."
    )


def _pictures(found: Equivalence) -> list[Markup]:
    rows = []
    for cell in _shown_cells(found):
        example, side = cell.example, cell.sides[found.storage]
        pictures = {"clean": example.clean, "theirs": example.theirs, "ours": example.ours[found.storage]}
        tiles = [_tile(values, title, f"{example.name}: {title}") for title, values in pictures.items()]
        tiles.append(_tile(_apart(example.theirs, example.ours[found.storage]), "difference × 4", "difference"))
        heading = element("h4", condition_label(cell.condition), " ", _said(side.images))
        rows.append(element("div", heading, element("div", tiles, class_="tiles"), class_="hit"))
    return [element("div", rows, class_="hits")]


def _apart(first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Four times the difference, around a middle gray."""
    return (128 + 4 * (second.astype(np.int16) - first)).clip(0, 255).astype(np.uint8)


def _tile(values: NDArray[np.uint8], title: str, alt: str) -> Markup:
    picture = Image.fromarray(values[..., 0] if values.shape[-1] == 1 else values)
    return element("figure", inline_picture(picture, alt), element("figcaption", title), class_="tile")
