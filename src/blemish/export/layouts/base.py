"""What a layout is."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from blemish.core.errors import InputError
from blemish.data.pictures import PICTURE_SUFFIXES

Renamed = Callable[[str, bytes, Callable[[str], str]], bytes | None]
"""From the name and the content of a file of labels, and what pictures are stored as, to its content beside them."""


def nothing_renamed(name: str, content: bytes, stored: Callable[[str], str]) -> bytes | None:
    """Labels that name no picture with its suffix."""
    return None


@dataclass(frozen=True)
class Layout:
    """Folders of one kind.

    ``is_picture`` tells the pictures from all other files by the parts of their names; the others are ``labels`` that
    go beside the copies, if there are any. ``formats`` are those that its readers open by name, the first by default;
    None where they take any. ``renamed`` rewrites labels that name pictures which get another suffix.
    """

    name: str
    title: str
    looks_like: str
    fits: Callable[[Path], bool]
    is_picture: Callable[[tuple[str, ...]], bool]
    labels: bool = True
    formats: tuple[str, ...] | None = None
    renamed: Renamed = nothing_renamed

    def pictures(self, names: list[str]) -> list[str]:
        """Of the names of all pictures below a folder those that are corrupted."""
        return [name for name in names if self.is_picture(tuple(name.split("/")))]

    def label_files(self, root: Path) -> list[str]:
        """The names of all files that belong to the pictures, as ``<folder>/<file>``, sorted."""
        if not self.labels:
            return []
        return [
            name
            for name in files_below(root)
            if not (name.lower().endswith(PICTURE_SUFFIXES) and self.is_picture(tuple(name.split("/"))))
        ]


def files_below(root: Path) -> list[str]:
    """All files below a folder that are not hidden, nor in hidden folders; links are not followed."""

    def fail(error: OSError) -> None:
        raise InputError(f"{error.filename}: cannot be listed ({error.strerror})") from error

    names = []
    for folder, subfolders, files in os.walk(root, onerror=fail):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        below = Path(folder).relative_to(root)
        names += [(below / file).as_posix() for file in files if not file.startswith(".")]
    return sorted(names)
