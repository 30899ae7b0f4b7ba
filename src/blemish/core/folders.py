"""Folders of results: one run at a time writes to them, and what killed ones left is removed.

Unfinished files stand in a staging folder inside the folder of results. The lock that keeps other runs out stands there
too, so that nothing is left at the end. Links out of a folder of results are refused: following one, a program that
tidies up would delete a user's own files.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from blemish.core.errors import InputError, StorageError
from blemish.core.files import FOLDER_LOCK, STAGING, discard_own, part_files, remove_abandoned
from blemish.core.locks import locked
from blemish.core.reading import is_folder, is_link, is_there

_log = logging.getLogger(__name__)

_LOCK = "lock"
_TEMPORARY = "blemish-unfinished-"


def check_folder(target: Path) -> None:
    """Refuse a destination that is not a folder, or not ours to write to, before any work."""
    try:
        target.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # it is to be made
    except (OSError, ValueError) as error:  # a name that is too long, or holds a NUL
        raise StorageError(f"cannot write to {target}: {getattr(error, 'strerror', None) or error}") from error
    existing = next(path for path in (target, *target.absolute().parents) if is_there(path))
    if not is_folder(existing):
        raise InputError(f"{existing} is a file; expected a folder to write to")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise StorageError(f"cannot write to {existing}: no permission")


@contextlib.contextmanager
def held_folder(destination: Path, share: str = "", *, names: Iterable[str] | None = None) -> Iterator[None]:
    """Make a folder and hold it, or one's ``share`` of it, against a second run for as long as this one lasts.

    Links that lead out of it are refused, in all of it or in the entries of it called ``names``.
    """
    check_folder(destination)
    check_links(destination, None if names is None else {STAGING, *names})
    staging = destination / STAGING
    lock = staging / (f"{_LOCK}-{share}" if share else _LOCK)
    try:
        with locked(lock, destination):
            _log.debug("holding %s", destination)
            try:
                _tidy(staging)
                remove_abandoned(part_files(destination))
                yield
            finally:
                if not share:  # otherwise they may be another share's
                    discard_own(staging)
                _tidy(staging)
    finally:
        with contextlib.suppress(OSError):  # not empty where another run is, or another share of this one
            staging.rmdir()


def _tidy(staging: Path) -> None:
    """Remove what killed runs left; what is being written is locked."""
    with contextlib.suppress(OSError):
        for path in list(staging.iterdir()):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                remove_abandoned([path])


@contextlib.contextmanager
def part_folder(beside: Path) -> Iterator[Path]:
    """An empty folder beside a final name, to be filled and renamed; what is left of it is removed at the end.

    The folder to rename is ``whole`` in it, because the lock that says that it is in use stands there too.
    """
    prefix = f".{beside.name}."
    _remove_folders(beside.parent, prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=beside.parent))
    with _in_use(folder):
        yield folder


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A temporary folder for large files; those that killed processes left are removed."""
    _remove_folders(Path(tempfile.gettempdir()), _TEMPORARY)
    folder = Path(tempfile.mkdtemp(prefix=_TEMPORARY))
    with _in_use(folder):
        yield folder


def _remove_folders(parent: Path, prefix: str) -> None:
    """Remove the folders of killed processes; others have no lock, or one that is held."""
    with contextlib.suppress(OSError):
        remove_abandoned([path for path in parent.iterdir() if path.name.startswith(prefix) and path.is_dir()])


@contextlib.contextmanager
def _in_use(folder: Path) -> Iterator[None]:
    try:
        with locked(folder / FOLDER_LOCK, folder):
            yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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
