"""Parts of the page that many sections use: sections, scrolling tables, foldable tables, legends."""

from __future__ import annotations

from collections.abc import Sequence

from blemish.reports.markup import Markup, element

__all__ = ["DASHES", "SYMBOLS", "folded", "legend", "scrolling", "section"]

DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")
_SVG_DASHES = ("", "7 3", "2 3", "7 3 2 3", "10 3", "10 3 2 3", "", "7 3")


def section(identity: str, title: str, *content: object) -> Markup:
    """A section with a heading that the bar at the top leads to."""
    heading = element("h2", title, id=f"{identity}-title")
    return element("section", heading, *content, id=identity, aria_labelledby=f"{identity}-title")


def scrolling(table: Markup, label: str) -> Markup:
    """A table that scrolls sideways by itself, also with the keyboard, where the page is narrow."""
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=label)


def folded(title: str, *content: object) -> Markup:
    """Something that opens on demand, and for printing."""
    return element("details", element("summary", title), *content)


def legend(names: Sequence[str], *, squares: bool = False) -> Markup:
    """Which colour and line is which model; a single model needs no key."""
    if len(names) < 2:
        return Markup("")
    key = _square if squares else _key
    return element("ul", [element("li", key(place), name) for place, name in enumerate(names)], class_="legend")


def _square(place: int) -> Markup:
    square = element("rect", x="1", y="1", width="10", height="10", rx="5", fill="currentColor")
    return element("svg", square, class_=f"s{place % 8}", width="12", height="12", aria_hidden="true")


def _key(place: int) -> Markup:
    line = element(
        "line",
        x1="1",
        y1="6",
        x2="33",
        y2="6",
        stroke="currentColor",
        stroke_width="2.5",
        stroke_dasharray=_SVG_DASHES[place % 8] or None,
    )
    return element("svg", line, class_=f"s{place % 8}", width="34", height="12", aria_hidden="true")
