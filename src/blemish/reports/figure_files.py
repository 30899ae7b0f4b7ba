"""Figures as files: .png, .svg or .pdf, whichever the name says; the same figure is the same file."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.marks import MARK

# Without a date, equal figures are equal files.
_METADATA: dict[str, dict[str, str | None]] = {
    ".png": {"Software": MARK},
    ".svg": {"Creator": MARK, "Date": None},
    ".pdf": {"Creator": MARK, "CreationDate": None},
}


def check_figure_name(path: str | os.PathLike[str]) -> Path:
    """Refuse a name that says no known format, before any work."""
    target = Path(path)
    if target.suffix.lower() not in _METADATA:
        raise InputError(f"{target}: expected a name that ends in {', '.join(_METADATA)}")
    return target


def save_figure(figure: Any, path: str | os.PathLike[str], **settings: Any) -> None:
    """Write a figure; ``settings`` are those of matplotlib's savefig."""
    target = check_figure_name(path)
    suffix = target.suffix.lower()
    buffer = io.BytesIO()
    figure.savefig(buffer, format=suffix[1:], metadata=_METADATA[suffix], **settings)
    write_bytes(target, buffer.getvalue())
