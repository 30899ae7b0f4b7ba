"""Links in folders of results: following one, a program that tidies up would delete a user's own files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from blemish.core.errors import InputError
from blemish.core.reading import is_folder, is_link

__all__ = ["check_links", "check_no_link"]


def check_links(folder: Path, names: Iterable[str] | None = None) -> None:
    """Refuse a folder of results with a link in it that leads out of it, or to another folder.

    ``names`` are the entries that belong to the results, by default all. The folder itself may be a link.
    """
    if not is_folder(folder):
        return
    inside = Path(os.path.realpath(folder))
    for link in _links(folder, None if names is None else {*names}):
        target = Path(os.path.realpath(link))
        if inside not in target.parents or target.is_dir():
            raise InputError(
                f"{link} is a link to {target}; expected results without links to other places: "
                "remove it, or choose another folder"
            )


def check_no_link(folder: Path, within: Path) -> None:
    """Refuse a folder of results that is itself a link in the folder that was named for them."""
    if is_link(folder):
        raise InputError(
            f"{folder} is a link to {os.path.realpath(folder)}; expected a folder in {within}: "
            "remove it, or choose another folder"
        )


def _links(folder: Path, names: set[str] | None) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            below = []
            for entry in entries:
                if names is not None and entry.name not in names:
                    continue
                if entry.is_symlink():
                    yield Path(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    below.append(Path(entry.path))
    except FileNotFoundError:
        return  # another share of the work has just finished with it
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed ({error.strerror or error})") from error
    for path in below:
        yield from _links(path, None)
