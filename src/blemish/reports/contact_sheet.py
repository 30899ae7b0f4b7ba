"""A contact sheet: one picture under many corruptions, a row for each and a column for each severity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from blemish.core.errors import InputError
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.severity import SeverityTable, severity_text
from blemish.corruptions.transform import content_id, corrupt
from blemish.data.pictures import resize_and_crop

WORKING_SIDE = 224

_PAPER, _INK, _QUIET, _RULE = "#fbfaf7", "#22252b", "#7a7f89", "#d9d6cf"
_MARGIN, _GAP, _THUMBNAIL = 28, 6, 128
_HEADER_HEIGHT, _HEADING_HEIGHT = 84, 40
_TITLE, _FAMILY, _LABEL, _SMALL = 26, 15, 15, 13


def contact_sheet(
    image: Image.Image,
    which: Catalog | Iterable[str | Corruption] = catalog,
    *,
    severities: Sequence[float] = (1, 2, 3, 4, 5),
    seed: int = 0,
    preset: str | None = None,
    working_side: int = WORKING_SIDE,
) -> Image.Image:
    """A picture under many corruptions: rows grouped by family, columns for the clean picture and each severity.

    A picture whose shorter side exceeds ``working_side`` is reduced to it before it is corrupted, as the published
    sets were: severities are tuned for pictures of about that size. Names are looked up in the standard catalog.
    """
    corruptions = list(which.values()) if isinstance(which, Catalog) else [_find(item) for item in which]
    if not corruptions:
        raise InputError("no corruptions; expected at least one")
    if not severities:
        raise InputError("no severities; expected at least one")
    if image.mode not in ("L", "RGB"):
        image = image.convert("RGB")
    image = reduced(image, working_side)
    settings = f"{_presets([corruption.table for corruption in corruptions], preset, image)}  ·  seed {seed}"
    sheet = _Sheet(_Layout.of(image, corruptions, len(severities), settings))
    sheet.header(settings, [severity_text(level) for level in severities])
    number = content_id(image)
    for family in dict.fromkeys(corruption.family for corruption in corruptions):
        sheet.heading(family)
        for corruption in (member for member in corruptions if member.family == family):
            known = [level for level in severities if corruption.supports(level)]
            if not known:
                sheet.row(corruption.name, [image])
                continue
            copies = corrupt(
                [image] * len(known), corruption, severity=known, seed=seed, ids=[number] * len(known), preset=preset
            )
            by_name = dict(zip(known, copies, strict=True))
            sheet.row(corruption.name, [image, *(by_name.get(level) for level in severities)])
    return sheet.finished()


def reduced(image: Image.Image, side: int) -> Image.Image:
    """The picture with its shorter side brought down to ``side``; a smaller one as it is."""
    return resize_and_crop(image, resize=side) if min(image.size) > side else image


def _presets(tables: Sequence[SeverityTable], preset: str | None, image: Image.Image) -> str:
    """Which severities the rows have, of all tables."""
    medical, sized = [table for table in tables if table.by_data_set], [table for table in tables if table.by_size]
    if not medical and not sized:
        return "severities for all image sizes"
    if preset:
        return f"preset {preset} (as asked)"
    chosen = []
    if sized:
        name = max(sized, key=lambda table: len(table.rows)).preset(image.height, image.width)
        chosen.append(f"preset {name} (nearest to a shorter side of {min(image.size)} px)")
    if medical:
        first = dict.fromkeys(next(iter(table.rows)) for table in medical)
        chosen.append(f"preset {', '.join(first)} (the first data set with settings)")
    return "  ·  ".join(chosen)


def _find(item: str | Corruption) -> Corruption:
    return item if isinstance(item, Corruption) else catalog[item]


@lru_cache(maxsize=8)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _text_width(text: str, size: int) -> int:
    left, _, right, _ = _font(size).getbbox(text)
    return int(right - left + 0.999)


@dataclass(frozen=True)
class _Layout:
    """Sizes in pixels, from the longest label and the shape of the picture."""

    label_width: int
    thumbnail: tuple[int, int]
    columns: int
    rows: int
    families: int
    header_width: int

    @classmethod
    def of(cls, image: Image.Image, corruptions: list[Corruption], severities: int, settings: str) -> _Layout:
        scale = _THUMBNAIL / max(image.size)
        size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
        widest = max(_text_width(corruption.name, _LABEL) for corruption in corruptions)
        families = len({corruption.family for corruption in corruptions})
        return cls(widest + 20, size, severities + 1, len(corruptions), families, _text_width(settings, _SMALL))

    @property
    def width(self) -> int:
        sheet = 2 * _MARGIN + self.label_width + self.columns * (self.thumbnail[0] + _GAP) - _GAP
        return max(sheet, 2 * _MARGIN + self.header_width)

    @property
    def height(self) -> int:
        rows = self.rows * (self.thumbnail[1] + _GAP)
        return 2 * _MARGIN + _HEADER_HEIGHT + self.families * _HEADING_HEIGHT + rows

    def left(self, column: int) -> int:
        return _MARGIN + self.label_width + column * (self.thumbnail[0] + _GAP)


class _Sheet:
    """The paper, filled from top to bottom."""

    def __init__(self, layout: _Layout) -> None:
        self.layout = layout
        self.paper = Image.new("RGB", (layout.width, layout.height), _PAPER)
        self.pen = ImageDraw.Draw(self.paper)
        self.top = _MARGIN

    def header(self, settings: str, severities: list[str]) -> None:
        self.pen.text((_MARGIN, self.top), "blemish", _INK, _font(_TITLE), anchor="lt")
        self.pen.text((_MARGIN, self.top + 34), settings, _QUIET, _font(_SMALL), anchor="lt")
        labels = ["clean", *severities]
        if self.layout.thumbnail[0] >= _text_width("severity 0.00", _SMALL):
            labels = ["clean", *(f"severity {level}" for level in severities)]
        self.top += _HEADER_HEIGHT
        for column, label in enumerate(labels):
            middle = self.layout.left(column) + self.layout.thumbnail[0] // 2
            self.pen.text((middle, self.top - 12), label, _QUIET, _font(_SMALL), anchor="mm")

    def heading(self, family: str) -> None:
        line = self.top + _HEADING_HEIGHT // 2
        self.pen.text((_MARGIN, line), family.upper(), _INK, _font(_FAMILY), anchor="lm")
        start = _MARGIN + _text_width(family.upper(), _FAMILY) + 14
        self.pen.line((start, line, self.layout.width - _MARGIN, line), fill=_RULE)
        self.top += _HEADING_HEIGHT

    def row(self, name: str, pictures: Sequence[Image.Image | None]) -> None:
        middle = self.top + self.layout.thumbnail[1] // 2
        self.pen.text((_MARGIN, middle), name, _INK, _font(_LABEL), anchor="lm")
        for column, picture in enumerate(pictures):
            if picture is None:
                continue
            self.paper.paste(self._thumbnail(picture), (self.layout.left(column), self.top))
        self.top += self.layout.thumbnail[1] + _GAP

    def _thumbnail(self, picture: Image.Image) -> Image.Image:
        # Small pictures are enlarged without smoothing, which would hide what was done to their pixels.
        larger = self.layout.thumbnail[0] >= picture.width
        method = Image.Resampling.NEAREST if larger else Image.Resampling.LANCZOS
        return picture.resize(self.layout.thumbnail, method).convert("RGB")

    def finished(self) -> Image.Image:
        return self.paper
