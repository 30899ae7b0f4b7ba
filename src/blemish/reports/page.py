"""Pages: one HTML file that needs nothing else, neither files nor the network.

Templates (``*.html.j2``) hold the markup and Python hands them plain data; every value is escaped where it is shown. A
content security policy lets a page run its own script, named by its hash, and load nothing at all.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from blemish.reports.svg import model_mark, swatch
from blemish.reports.visible import soft, visible
from blemish.version import VERSION

ALL_INSIDE = "The page holds all that it shows and loads nothing."
"""For the footer of a page."""


@dataclass(frozen=True)
class Chart:
    """A chart as SVG, and what it says in words; ``model`` is the number of the model that it is of, if of one."""

    identity: str
    title: str
    svg: Markup
    description: str
    model: int | None = None


@dataclass(frozen=True)
class Section:
    """A section of a page: a template, named by its path in the package, and the ``data`` that it shows."""

    identity: str
    title: str
    template: str
    data: Mapping[str, Any]
    short: str = ""
    """Its name in the bar at the top, where that is not the title."""


@dataclass(frozen=True)
class ExtraSections:
    """What a study adds to the page of some runs."""

    sections: Sequence[Section] = ()
    warnings: Sequence[str] = ()
    """For the top of the page."""


@dataclass(frozen=True)
class Page:
    """A page as data. ``first`` is what a person would say first; ``models`` can be switched on and off."""

    title: str
    kicker: str
    heading: str
    lead: str
    warnings: Sequence[str]
    sections: Sequence[Section]
    footer: str
    first: Sequence[str] = ()
    models: Sequence[str] = ()


def render_page(page: Page) -> str:
    """The page as HTML with everything it needs inside."""
    own = _file("page.js")
    return (
        page_environment()
        .get_template("reports/templates/page.html.j2")
        .render(
            page=page,
            version=VERSION,
            policy=_policy(own),
            style=_raw("style", _file("page.css")),
            script=_raw("script", own),
        )
    )


@lru_cache(maxsize=1)
def page_environment() -> Environment:
    """Where templates of the package are found and how they are filled: escaped, and without anything undefined."""
    environment = Environment(
        loader=PackageLoader("blemish", ""),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["soft"] = soft
    environment.globals["swatch"] = swatch
    environment.globals["model_mark"] = model_mark
    return environment


def _shown(value: Any) -> Any:
    return value if isinstance(value, Markup) else visible(str(value))


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
