"""The report: one HTML file that needs nothing else, neither files nor the network.

A content security policy lets the page run its own two scripts, named by their hashes, and load nothing at all.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from blemish.core.errors import InputError, StorageError
from blemish.core.files import part_file, write_bytes
from blemish.core.optional import optional_import
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import Baseline
from blemish.reports.html_charts import Chart
from blemish.reports.html_page import ExtraSections, Page
from blemish.reports.html_sections import sections
from blemish.reports.markup import Markup, element, embedded_json, joined, raw_element
from blemish.version import VERSION

__all__ = ["NO_CHARTS", "charts_are_drawn", "check_report_path", "document", "report_page", "write_report"]

_SUFFIXES = (".html", ".htm")

NO_CHARTS = "Charts are told in words, because plotly is not installed; to draw them: pip install 'blemish[full]'"


def check_report_path(path: str | os.PathLike[str], *, others: Sequence[str] = ()) -> Path:
    """Refuse a file that is no page, nor of one of the ``others`` (suffixes), or that cannot be made, before any work.

    For that, a file is made where it will stand, or in the nearest folder that is there, and removed again.
    """
    target = Path(path)
    if target.suffix.lower() not in (*_SUFFIXES, *others):
        *first, last = (_SUFFIXES[0], *others)
        accepted = f"{', '.join(first)} or {last}" if first else last
        raise InputError(f"{target}: expected a file name that ends in {accepted}")
    try:
        if target.is_dir():
            raise InputError(f"{target} is a folder; expected a file name")
        folder = next(parent for parent in target.absolute().parents if parent.exists())
        if not folder.is_dir():
            raise InputError(f"cannot write {target}: {folder} is a file; expected a folder")
    except OSError as error:
        raise StorageError(f"cannot write {target}: {error.strerror or error}") from error
    _try(target, folder)
    return target


def _try(target: Path, folder: Path) -> None:
    """Access rights do not tell all: file systems may be read-only, full, or not for files."""
    try:
        # Under its name, because names can be too long; it is removed at the end.
        with part_file(folder / target.name):
            pass
    except StorageError as error:
        reason = str(error).removeprefix(f"cannot write {folder / target.name}: ")
        raise StorageError(f"cannot write {target}: no file can be made in {folder}: {reason}") from error


def write_report(
    runs: Sequence[Run],
    path: str | os.PathLike[str],
    *,
    extra: Sequence[ExtraSections] = (),
    baseline: Baseline | Run | str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    report: ProgressReport = tell_nobody,
) -> Path:
    """Write the report of some runs; the file is complete or not there.

    ``extra`` are sections of studies, such as `blemish.studies.separation.section.separation_sections` finds them.
    ``report`` is told how far it has come.
    """
    target = check_report_path(path)
    content = report_page(runs, extra=extra, baseline=baseline, level=level, replicates=replicates, report=report)
    write_bytes(target, content.encode("utf-8"))
    return target


def report_page(
    runs: Sequence[Run],
    *,
    extra: Sequence[ExtraSections] = (),
    baseline: Baseline | Run | str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    report: ProgressReport = tell_nobody,
) -> str:
    """The whole page as text; the same runs give the same page."""
    if not runs:
        raise InputError("no runs to report; expected at least one")
    drawn = charts_are_drawn()
    library = str(optional_import("plotly.offline").get_plotlyjs()) if drawn else ""
    page = sections(
        runs,
        extra=extra,
        baseline=baseline,
        level=level,
        replicates=replicates,
        drawn=drawn,
        warnings=() if drawn else (f"{NO_CHARTS}.",),
        report=report,
    )
    return f"<!doctype html>\n{document(page, library)}\n"


def charts_are_drawn() -> bool:
    """Whether the library that draws the charts of a report is installed."""
    try:
        optional_import("plotly.offline")
    except InputError:
        return False
    return True


def document(page: Page, library: str) -> Markup:
    """A page with everything it needs inside; ``library`` draws its charts."""
    own = _file("page.js")
    # A data block: browsers never run it, whatever it holds.
    charts = raw_element("script", _charts(page.charts), type="application/json", id="charts")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(library, own)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="generator", content=f"blemish {VERSION}"),
        element("title", page.title),
        raw_element("style", _file("page.css")),
    )
    links = [element("a", title, href=f"#{identity}") for identity, title in page.contents]
    button = element("button", "Dark", id="theme", type="button", hidden=True)
    body = element(
        "body",
        element("a", "Skip to the results", href="#main", class_="skip"),
        page.header,
        element("div", element("div", element("nav", links, aria_label="Sections"), button), class_="bar"),
        element("main", page.body, id="main"),
        element("footer", page.footer),
        charts,
        raw_element("script", library),
        raw_element("script", own),
    )
    return element("html", joined([head, body]), lang="en")


def _charts(charts: Sequence[Chart]) -> str:
    return embedded_json([chart.description_for_page() for chart in charts])


def _file(name: str) -> str:
    return resources.files("blemish.reports").joinpath(name).read_text(encoding="utf-8")


def _policy(*scripts: str) -> str:
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts]
    return (
        f"default-src 'none'; script-src {' '.join(hashes)}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
