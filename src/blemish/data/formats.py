"""Formats in which pictures are stored: JPEG of some quality, PNG, and WebP without loss or of some quality."""

from __future__ import annotations

import functools
import io
import re
from dataclasses import dataclass

from PIL import Image

from blemish.core.errors import InputError

SUFFIXES = {"jpeg": (".jpg", ".jpeg"), "png": (".png",), "webp": (".webp",)}
"""The formats, and the file suffixes that say so; the first is given to files that need a new one."""

_USUAL_QUALITY = 85
"""JPEG's, as ImageNet-C was published."""

_LONGEST = {"jpeg": 65_500, "webp": 16_383}
_NAMED = re.compile(r"(?P<kind>[a-z]+)(?::(?P<quality>[0-9]{1,3}))?")


@dataclass(frozen=True)
class PictureFormat:
    """A kind of files, and the quality of lossy ones: PNG, and WebP without one, keep every pixel."""

    kind: str
    quality: int | None = None

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes of such files, as they are usually written first."""
        return SUFFIXES[self.kind]

    def __str__(self) -> str:
        usual = self.quality is None or (self.kind == "jpeg" and self.quality == _USUAL_QUALITY)
        return self.kind if usual else f"{self.kind}:{self.quality}"


@functools.cache
def picture_format(text: str) -> PictureFormat:
    """A format by its name: ``jpeg`` (of quality 85), ``jpeg:95``, ``png``, ``webp`` (lossless) or ``webp:90``.

    >>> str(picture_format("jpeg:85")), picture_format("webp"), picture_format("webp:90").quality
    ('jpeg', PictureFormat(kind='webp', quality=None), 90)
    """
    parts = _NAMED.fullmatch(text.lower())
    kind = {"jpg": "jpeg"}.get(parts["kind"], parts["kind"]) if parts else ""
    if parts is None or kind not in SUFFIXES:
        raise InputError(f"unknown format {text!r}; expected jpeg, jpeg:95, png, webp (lossless) or webp:90")
    if parts["quality"] is None:
        return PictureFormat(kind, _USUAL_QUALITY if kind == "jpeg" else None)
    quality = int(parts["quality"])
    if kind == "png":
        raise InputError(f"format {text!r}; expected png, which keeps every pixel and has no quality")
    if not 1 <= quality <= 100:
        raise InputError(f"format {text!r}; expected a quality from 1 to 100")
    return PictureFormat(kind, quality)


def format_of(suffix: str) -> str | None:
    """The format that a file's suffix says, if it is one of those that are written."""
    return next((kind for kind, suffixes in SUFFIXES.items() if suffix.lower() in suffixes), None)


def stored_name(name: str, file_format: str) -> str:
    """The name of a copy: the picture's own if its suffix fits the format, else with another suffix.

    >>> stored_name("a/x.JPEG", "jpeg:95"), stored_name("a/x.b.jpg", "png")
    ('a/x.JPEG', 'a/x.b.png')
    """
    suffixes = picture_format(file_format).suffixes
    folder, slash, file = name.rpartition("/")
    stem, dot, suffix = file.rpartition(".")
    if f".{suffix.lower()}" in suffixes and stem:
        return name
    return f"{folder}{slash}{stem if stem and dot else file}{suffixes[0]}"


def check_size(file_format: str, height: int, width: int) -> None:
    """Refuse a picture that is too large for a format."""
    kind = picture_format(file_format).kind
    longest = _LONGEST.get(kind)
    if longest is not None and max(height, width) > longest:
        raise InputError(f"{width}×{height} pixels; {kind} holds at most {longest:,} on a side: choose png")


def encoded(picture: Image.Image, file_format: str, exif: Image.Exif) -> bytes:
    """A picture as the bytes of a file."""
    chosen = picture_format(file_format)
    buffer = io.BytesIO()
    if chosen.kind == "jpeg":
        picture.save(buffer, "JPEG", quality=chosen.quality, exif=exif)
    elif chosen.kind == "png":
        picture.save(buffer, "PNG", compress_level=4, exif=exif)
    elif chosen.quality is None:
        picture.save(buffer, "WEBP", lossless=True, exact=True, exif=exif)
    else:
        picture.save(buffer, "WEBP", quality=chosen.quality, exif=exif)
    return buffer.getvalue()
