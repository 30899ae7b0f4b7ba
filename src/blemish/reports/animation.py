"""Frames as an animated GIF or WebP."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from PIL import Image, features

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.marks import mark_settings

ANIMATION_SUFFIXES = (".gif", ".webp")

_OPTIONS: dict[str, dict[str, Any]] = {
    ".gif": {"format": "GIF", "optimize": False, "disposal": 1},
    ".webp": {"format": "WEBP", "quality": 90, "method": 4},
}


def check_animation_path(path: str | os.PathLike[str]) -> Path:
    """Refuse a file that cannot be written as an animation, before any work."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in ANIMATION_SUFFIXES:
        raise InputError(f"{target}: expected a file name that ends in .gif or .webp")
    if suffix == ".webp" and not features.check("webp"):
        raise InputError(f"{target}: this Pillow cannot write WebP; expected a file name that ends in .gif")
    if not target.absolute().parent.is_dir():
        raise InputError(f"{target.absolute().parent}: no such folder")
    return target


def write_animation(frames: Iterable[Image.Image], path: str | os.PathLike[str], *, milliseconds: int = 100) -> int:
    """Write frames as an endless animation, the format by the suffix; returns how many were written.

    GIF holds 256 colours per frame, WebP all of them.
    """
    target = check_animation_path(path)
    pictures = [frame.convert("RGB") for frame in frames]
    if not pictures:
        raise InputError("no frames; expected at least one")
    suffix = target.suffix.lower()
    options = {**_OPTIONS[suffix], **mark_settings(suffix), "save_all": True, "duration": milliseconds, "loop": 0}
    content = io.BytesIO()
    try:
        pictures[0].save(content, append_images=pictures[1:], **options)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error}") from error
    write_bytes(target, content.getvalue())
    return len(pictures)
