"""The gallery: a page with a picture under every corruption of every catalogue, each beside what is said of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image

from blemish.core.progress import ProgressReport, tell_nobody
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import catalogue_of
from blemish.corruptions.severity import severity_text
from blemish.corruptions.transform import content_id, corrupt
from blemish.reports.examples import inline_picture
from blemish.reports.page import ALL_INSIDE, Page, Section, render_page
from blemish.version import VERSION

GALLERY_SEVERITIES = (1.0, 3.0, 5.0)


def gallery_page(
    image: Image.Image,
    corruptions: Sequence[Corruption],
    *,
    severities: Sequence[float] = GALLERY_SEVERITIES,
    seed: int = 0,
    preset: str | None = None,
    report: ProgressReport = tell_nobody,
) -> str:
    """The page as HTML: a section for each catalogue, in it every corruption at the severities that it has.

    ``report`` is told how many corruptions are drawn.
    """
    picture = image if image.mode in ("L", "RGB") else image.convert("RGB")
    catalogues: dict[str, list[Corruption]] = {}
    for corruption in corruptions:
        catalogues.setdefault(catalogue_of(corruption), []).append(corruption)
    sections, done = [], 0
    for name, members in catalogues.items():
        rows = []
        for corruption in members:
            report(done, len(corruptions), corruption.name)
            rows.append(_row(picture, shown(picture, corruption, severities, seed=seed, preset=preset)))
            done += 1
        title = f"{name} ({len(members)})"
        sections.append(Section(f"catalogue-{name}", title, "reports/templates/gallery.html.j2", {"shown": rows}, name))
    many = "1 corruption" if len(corruptions) == 1 else f"{len(corruptions)} corruptions"
    count = "1 catalogue" if len(catalogues) == 1 else f"{len(catalogues)} catalogues"
    levels = ", ".join(severity_text(level) for level in severities)
    page = Page(
        title="blemish: gallery",
        kicker="Gallery",
        heading=f"{many} of {count}",
        lead=f"One picture of {picture.width} × {picture.height} px, clean and at severities {levels}; seed {seed}.",
        warnings=(),
        sections=sections,
        footer=f"Made by blemish {VERSION}. {ALL_INSIDE}",
    )
    return render_page(page)


@dataclass(frozen=True)
class Shown:
    """A corruption and its copies of a picture, by severity; ``note`` is what is said of the files it is made from."""

    corruption: Corruption
    family: str
    note: str | None
    copies: list[tuple[float, Image.Image]]


def shown(
    picture: Image.Image,
    corruption: Corruption,
    severities: Sequence[float],
    *,
    seed: int = 0,
    preset: str | None = None,
) -> Shown:
    """A picture under one corruption, at those of the severities that it has."""
    known = [level for level in severities if corruption.supports(level)]
    ids = [content_id(picture)] * len(known)
    copies = corrupt([picture] * len(known), corruption, severity=known, seed=seed, ids=ids, preset=preset)
    family = corruption.family if corruption.family != catalogue_of(corruption) else ""
    note = None if corruption.files is None else corruption.files.note
    return Shown(corruption, family, note, list(zip(known, copies, strict=True)))


def _row(picture: Image.Image, entry: Shown) -> dict[str, Any]:
    tiles = [("clean", inline_picture(picture, "clean"))]
    for level, copy in entry.copies:
        title = f"severity {severity_text(level)}"
        tiles.append((title, inline_picture(copy, f"{entry.corruption.name}, {title}")))
    return {"corruption": entry.corruption, "family": entry.family, "note": entry.note, "tiles": tiles}
