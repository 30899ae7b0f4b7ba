"""The arena as a page: errors of methods × settings, each setting in full, and how it was made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blemish.core.files import write_bytes
from blemish.reports.charts import Line, time_lines
from blemish.reports.page import ALL_INSIDE, Chart, Page, Section, render_page
from blemish.studies.arena.published import published_table
from blemish.studies.arena.results import ArenaInfo
from blemish.studies.arena.scores import UNADAPTED, Scored
from blemish.studies.arena.tables import (
    condition_table,
    cost_table,
    error_table,
    intervals_text,
    setting_table,
    tuning_table,
)
from blemish.version import VERSION


def write_page(settings: Sequence[Scored], info: ArenaInfo, path: Path) -> None:
    """Write the page; the file is complete or not there."""
    write_bytes(path, arena_page(settings, info).encode("utf-8"))


def arena_page(settings: Sequence[Scored], info: ArenaInfo) -> str:
    """The whole page as text; the same results give the same page."""
    intervals = intervals_text(settings[0].level)
    methods = {name for setting in settings for name, entrant in setting.entrants.items() if entrant.published}
    page = Page(
        title=f"Test-time adaptation: {info.model.name}",
        kicker="Test-time adaptation",
        heading=f"Adaptation of {info.model.name}",
        lead=f"{len(methods)} methods on {len(settings)} settings, on {info.images:,} images of {info.data}.",
        warnings=[],
        sections=[
            _section("errors", "errors", "Methods and settings", table=error_table(settings), intervals=intervals),
            *(_setting(setting, info) for setting in settings),
            _section("made", "made", "How it was made", lines=_lines(info)),
        ],
        footer=f"Made by blemish {VERSION} from the result of each method. {ALL_INSIDE}",
    )
    return render_page(page)


def _section(identity: str, template: str, title: str, **data: Any) -> Section:
    return Section(identity, title, f"studies/arena/templates/{template}.html.j2", data)


def _setting(setting: Scored, info: ArenaInfo) -> Section:
    further = (tuning_table(setting), published_table(setting, info))
    tables = [setting_table(setting), cost_table(setting), condition_table(setting)]
    tables += [table for table in further if table is not None]
    names = [name for name in setting.curves if name != UNADAPTED]
    return _section(
        f"setting-{setting.name}",
        "setting",
        setting.name,
        tables=tables,
        chart=_chart(setting, names) if len(setting.at) > 1 else None,
        names=names,
        window=f"{setting.window:,}",
        marked=len(setting.begins) > 1,
        unadapted=UNADAPTED in setting.curves,
    )


def _chart(setting: Scored, adapted: Sequence[str]) -> Chart:
    """Accuracy over the last images of the first stream, a line for each method; none is gray and dotted."""
    lines = [
        Line(name, setting.at, [100 * (1 - value) for value in curve], adapted.index(name) if name in adapted else None)
        for name, curve in setting.curves.items()
    ]
    titles = ("images", "accuracy, %")
    begins = setting.begins if len(setting.begins) > 1 else ()
    return time_lines(f"running-{setting.name}", setting.name, lines, titles=titles, wide=True, begins=begins)


def _lines(info: ArenaInfo) -> dict[str, str]:
    protocol = info.protocol
    seen = "as they are" if protocol.resize is None else f"resized to {protocol.resize}, cropped to {protocol.view}"
    return {
        "model": f"{info.model.name} ({info.model.kind}), weights {info.model.weights}",
        "images": f"{info.images:,} of {info.data}, {seen}; fingerprint {info.fingerprint}",
        "list of images": info.image_list or "all, or a balanced part",
        "corruptions": f"{', '.join(info.corruptions)} ({info.benchmark})",
        "pixels": f"seed {protocol.seed}, stored {protocol.storage}, severities {protocol.preset or 'by image size'}",
        "methods": f"published settings for {info.methods}",
        "walk": info.walk or "none",
        "clean images before and after": f"{info.clean_images:,}",
    }
