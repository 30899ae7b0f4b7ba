"""Pages: one HTML file that needs nothing else, neither files nor the network.

Templates (``*.html.j2``) hold the markup and Python hands them plain data; every value is escaped where it is shown. A
content security policy lets a page run its own two scripts, named by their hashes, and load nothing at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from blemish.version import VERSION

ALL_INSIDE = "The page holds all that it shows and loads nothing."
"""For the footer of a page."""

# Direction marks in a file's name could make a page read differently from what it says.
_SHOWN = {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)}
_SHOWN |= dict.fromkeys((*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F), "\ufffd")


@dataclass(frozen=True)
class Chart:
    """A chart as Plotly's description, with the words that stand in for it, and its height in pixels."""

    identity: str
    title: str
    description: str
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    height: int = 170


@dataclass(frozen=True)
class Section:
    """A section of a page: a template, named by its path in the package, and the ``data`` that it shows."""

    identity: str
    title: str
    template: str
    data: Mapping[str, Any]
    short: str = ""
    """Its name in the bar at the top, where that is not the title."""
    charts: Sequence[Chart] = ()
    """Those that its template has places for."""


@dataclass(frozen=True)
class ExtraSections:
    """What a study adds to the page of some runs."""

    sections: Sequence[Section] = ()
    warnings: Sequence[str] = ()
    """For the top of the page."""


@dataclass(frozen=True)
class Page:
    """A page as data; charts that are not ``drawn`` are told in words."""

    title: str
    kicker: str
    heading: str
    lead: str
    warnings: Sequence[str]
    sections: Sequence[Section]
    footer: str
    drawn: bool = True


def render_page(page: Page, library: str = "") -> str:
    """The page as HTML with everything it needs inside; ``library`` draws its charts."""
    own = _file("page.js")
    charts = [chart for section in page.sections for chart in section.charts if page.drawn]
    return (
        page_environment()
        .get_template("reports/templates/page.html.j2")
        .render(
            page=page,
            drawn=page.drawn,
            version=VERSION,
            policy=_policy(library, own),
            style=_raw("style", _file("page.css")),
            charts=_raw(
                "script", embedded_json([{"id": c.identity, "data": c.data, "layout": c.layout} for c in charts])
            ),
            scripts=[_raw("script", library), _raw("script", own)],
        )
    )


@lru_cache(maxsize=1)
def page_environment() -> Environment:
    """Where templates of the package are found and how they are filled: escaped, and without anything undefined."""
    return Environment(
        loader=PackageLoader("blemish", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def visible(text: str) -> str:
    """A text without what cannot be written or seen: lone surrogates, control characters and direction marks."""
    # Lone surrogates stand for the bytes of file names that are not UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8").translate(_SHOWN)


def _shown(value: Any) -> Any:
    return value if isinstance(value, Markup) else visible(str(value))


def embedded_json(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or open a comment."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _raw(tag: str, content: str) -> Markup:
    """A script or style of our own: it is not text, and must not hold the end of its element."""
    if f"</{tag}" in content.lower():
        raise ValueError(f"a {tag} that holds its own end")
    return Markup(content)


def _file(name: str) -> str:
    return resources.files("blemish.reports").joinpath("templates", name).read_text(encoding="utf-8")


def _policy(*scripts: str) -> str:
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts]
    return (
        f"default-src 'none'; script-src {' '.join(hashes)}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
