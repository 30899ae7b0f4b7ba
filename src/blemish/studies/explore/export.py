"""The page without a server: a folder with strips of pictures that were made beforehand, and what models said of them.

It opens from a disk (``file://``) as from any web server, and cannot be changed: severities are those of the strips.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from PIL import Image

from blemish.benchmarks.condition import CLEAN
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.marks import is_ours, mark_settings
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.corruptions.base import Corruption
from blemish.corruptions.severity import MAX_SEVERITY, severity_text
from blemish.studies.explore.copies import texts_of
from blemish.studies.explore.film import film_walk, frames_of
from blemish.studies.explore.page import Page, catalogues_of, picture_entry
from blemish.studies.explore.pictures import Picture
from blemish.studies.explore.subject import Subject
from blemish.studies.explore.views import View

LEVELS = tuple(step / 2 for step in range(2 * MAX_SEVERITY + 1))
"""The severities of an export; 0 is the clean picture."""

SEVERITY = "4.321"
"""What stands for the severity in the texts of an export: the page writes the chosen one in its place."""

_PAGE, _STRIPS = "index.html", "strips"
# Pictures beside each other in a file: browsers draw from images of at most 16,384 pixels everywhere.
_LONGEST = 16_000
_QUALITY = 92


@dataclass(frozen=True)
class _Strip:
    """Views of one picture that share a file."""

    picture: Picture
    key: str
    file: str
    views: Sequence[View]


def write_export(
    folder: Path, subject: Subject, *, walk: Path | None = None, report: ProgressReport = tell_nobody
) -> Path:
    """Write the page of these pictures and give its path; a folder of something else is refused.

    The page comes last, so that one that is there is whole.
    """
    _check_folder(folder)
    chosen = _made(subject)
    if not chosen:
        raise InputError("no corruption that can be made here; expected at least one, such as --corruption fog")
    begin = subject.begin
    if len(begin.condition.steps) > 1:
        raise InputError(f"{begin.condition} in an export, which has single corruptions; expected one such as fog@3")
    steps = _begin(begin, chosen)
    # Folders of this machine are nobody else's concern.
    pictures = [replace(picture, path=picture.path and picture.name) for picture in subject.pictures]
    film, film_note = film_walk(walk, subject.catalog if walk is not None or subject.shown is None else subject.shown)
    frames = [] if film is None else frames_of(film)
    strips: list[_Strip] = []
    for number, picture in enumerate(pictures):
        conditions = {"clean": [View(CLEAN, begin.seed)]}
        conditions |= {str(i): _views(unit, begin.seed, subject) for i, unit in enumerate(chosen)}
        known = list(dict.fromkeys(frame["c"] for frame in frames))
        conditions["walk"] = [View.of(text, begin.seed, subject.catalog) for text in known]
        strips += _cut(picture, number, conditions)
    stored: dict[str, dict[str, Any]] = {picture.key: {} for picture in pictures}
    # Of one that is made again, the page goes first: its pictures do.
    (folder / _PAGE).unlink(missing_ok=True)
    if (folder / _STRIPS).is_dir():
        shutil.rmtree(folder / _STRIPS)
    for done, strip in enumerate(strips):
        report(done, len(strips), f"{strip.picture.name}: {strip.views[0].condition.group}")
        _write(folder, strip, subject, stored)
    texts = {picture.key: _texts(picture, chosen, begin.seed, subject) for picture in pictures}
    state = {
        "models": [witness.model.name for witness in subject.witnesses],
        "catalogues": catalogues_of(chosen),
        "begin": {"seed": begin.seed, "steps": steps},
        "film": frames,
        "most": 0,
        "note": subject.note,
        "pictures": [picture_entry(picture.key, picture) for picture in pictures],
        "levels": list(LEVELS),
        "stored": stored,
        "texts": texts,
        "severity": SEVERITY,
    }
    page = Page(live=False, side=subject.side, film=film_note if frames else None)
    write_bytes(folder / _PAGE, page.render(state).encode())
    report(len(strips), len(strips), "done")
    return folder / _PAGE


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: a file; expected a folder for the page")
    held = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    ours = held <= {_PAGE, _STRIPS} and (_PAGE not in held or is_ours(folder / _PAGE))
    if not ours:
        raise InputError(f"{folder}: not empty, and not a page of blemish explore; expected another folder")


def _made(subject: Subject) -> list[Corruption]:
    """The corruptions that can be made here: those that were named, or ImageNet-C's."""
    shown = subject.shown
    units = list(shown.values()) if shown is not None else [subject.catalog[name] for name in subject.catalog.plain()]
    missing = {unit["name"] for each in catalogues_of(units) for unit in each["units"] if unit["missing"]}
    return [unit for unit in units if unit.name not in missing]


def _levels(unit: Corruption) -> tuple[float, ...]:
    return LEVELS[1:] if unit.only_severity is None else (unit.only_severity,)


def _views(unit: Corruption, seed: int, subject: Subject) -> list[View]:
    return [View.of(f"{unit.name}@{severity_text(level)}", seed, subject.catalog) for level in _levels(unit)]


def _begin(begin: View, chosen: Sequence[Corruption]) -> list[dict[str, Any]]:
    """What the page begins with, at the nearest severity that it has."""
    names = {unit.name: unit for unit in chosen}
    steps = []
    for step in begin.condition.steps:
        if step.name not in names:
            raise InputError(f"{begin.condition} is not among the corruptions of the export; expected one of them")
        near = min(_levels(names[step.name]), key=lambda level: abs(level - step.low))
        steps.append({"name": step.name, "severity": near})
    return steps


def _cut(picture: Picture, number: int, conditions: dict[str, list[View]]) -> list[_Strip]:
    """Files with as many views as browsers can draw from."""
    most = max(1, _LONGEST // picture.image.width)
    return [
        _Strip(picture, picture.key, f"{_STRIPS}/{number}-{name}-{start // most}.jpg", views[start : start + most])
        for name, views in conditions.items()
        for start in range(0, len(views), most)
    ]


def _write(folder: Path, strip: _Strip, subject: Subject, stored: dict[str, dict[str, Any]]) -> None:
    width, height = strip.picture.image.size
    sheet = Image.new("RGB", (width * len(strip.views), height))
    for at, view in enumerate(strip.views):
        sheet.paste(view.image(strip.picture), (at * width, 0))
        answers = [witness.told(strip.picture, view) for witness in subject.witnesses]
        entry = {"file": strip.file, "at": at, "width": width, "height": height, "answers": answers}
        stored[strip.key].setdefault(str(view.condition), entry)
    content = io.BytesIO()
    sheet.save(content, "JPEG", quality=_QUALITY, subsampling=0, **mark_settings(".jpg"))
    write_bytes(folder / strip.file, content.getvalue())


def _texts(picture: Picture, chosen: Sequence[Corruption], seed: int, subject: Subject) -> dict[str, dict[str, str]]:
    """For each corruption, the texts at a severity that the page replaces by the chosen one."""
    texts = {"clean": texts_of(picture, View(CLEAN, seed), subject.origin)}
    for unit in chosen:
        level = SEVERITY if unit.only_severity is None else severity_text(unit.only_severity)
        texts[unit.name] = texts_of(picture, View.of(f"{unit.name}@{level}", seed, subject.catalog), subject.origin)
    return texts
