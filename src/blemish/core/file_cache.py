"""A folder of files that can be fetched again: bounded in size, and shared by threads and processes.

A file is held by a lock while it is in use. What nobody holds goes when room is needed, the longest unused first.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from blemish.core.errors import StorageError, storage_errors
from blemish.core.files import PartFile, part_files
from blemish.core.locks import is_abandoned, locked, remove_unused, same_file, try_lock
from blemish.core.memory import shown_bytes

_log = logging.getLogger(__name__)

_LOCK = ".blemish-cache-lock"
_LOCK_PATIENCE = 60.0
_PAUSE = 0.05

# How long files that others hold are waited for, when there is no room.
_PATIENCE = 30.0

_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


class _Entry(NamedTuple):
    used: int
    path: Path
    size: int


class FileCache:
    """Files below ``folder`` of at most ``most`` bytes together; ``advice`` says how to have more."""

    def __init__(self, folder: Path, most: int, *, advice: str) -> None:
        self.folder, self.most, self._advice = folder, most, advice
        self._fetching: dict[str, threading.Lock] = {}
        self._own = threading.Lock()

    @contextlib.contextmanager
    def held(self, name: str, size: int, fetch: Callable[[PartFile], None], *, title: str = "") -> Iterator[Path]:
        """The file of this name and size, there for as long as it is held; ``fetch`` writes it where it is missing.

        ``title`` is what messages call it.
        """
        if size > self.most:
            raise StorageError(
                f"{title or name}: a file of {shown_bytes(size)}, more than the {shown_bytes(self.most)} that "
                f"{self.folder} may hold; {self._advice}"
            )
        path = self.folder / name
        while (descriptor := self._opened(path, size)) is None:
            self._fetched(path, size, fetch)
        try:
            yield path
        finally:
            os.close(descriptor)

    def _opened(self, path: Path, size: int) -> int | None:
        """A file that is complete, held; None where there is none."""
        while True:
            try:
                descriptor = os.open(path, _FLAGS)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise StorageError(f"cannot use {path}: {error.strerror or error}") from error
            if try_lock(descriptor, shared=True) is not False and same_file(descriptor, path):
                status = os.fstat(descriptor)
                if status.st_size == size:
                    # The time of its last use; that of its change tells readers whether it is still the same.
                    with contextlib.suppress(OSError):
                        os.utime(path, ns=(time.time_ns(), status.st_mtime_ns))
                    return descriptor
                os.close(descriptor)
                _log.info("removing %s: %d bytes, not %d", path, status.st_size, size)
                with storage_errors(f"cannot remove {path}"):
                    path.unlink(missing_ok=True)
                return None
            os.close(descriptor)  # somebody is removing it
            time.sleep(_PAUSE / 10)

    def _fetched(self, path: Path, size: int, fetch: Callable[[PartFile], None]) -> None:
        with self._own:
            turn = self._fetching.setdefault(path.name, threading.Lock())
        with turn:
            part = self._part(path, size)
            if part is None:  # it was fetched by somebody else
                return
            try:
                fetch(part)
                part.sync()
                if (written := part.path.stat().st_size) != size:
                    raise StorageError(f"cannot write {path}: {written:,} bytes of {size:,} came")
                # Whoever counts files would miss one that changes its name meanwhile.
                with locked(self.folder / _LOCK, self.folder, patience=_LOCK_PATIENCE):
                    part.finish()
            finally:
                part.discard()

    def _part(self, path: Path, size: int) -> PartFile | None:
        """Room for a file, taken; None when it is there, which is waited for while another process fetches it."""
        with storage_errors(f"cannot write to {self.folder}"):
            self.folder.mkdir(parents=True, exist_ok=True)
        give_up = time.monotonic() + _PATIENCE
        while True:
            with locked(self.folder / _LOCK, self.folder, patience=_LOCK_PATIENCE):
                if path.exists():
                    return None
                if not _being_written(part_files(self.folder, f".{path.name}.")):
                    lacking = self._make_room(size)
                    if lacking <= 0:
                        return _reserved(path, size)
                    if _being_written(part_files(self.folder)):  # and will soon be free
                        give_up = time.monotonic() + _PATIENCE
                    elif time.monotonic() > give_up:
                        raise StorageError(
                            f"{self.folder} is full of files in use: {shown_bytes(lacking)} more are needed than the "
                            f"{shown_bytes(self.most)} that it may hold; {self._advice}"
                        )
            time.sleep(_PAUSE)

    def _make_room(self, size: int) -> int:
        """Remove what has not been used for longest until so many bytes fit; how many are lacking."""
        entries = sorted(self._entries())
        total = sum(entry.size for entry in entries) + size
        for entry in entries:
            if total <= self.most:
                break
            if not entry.path.name.startswith(".") and remove_unused(entry.path):
                _log.info("removed %s to make room", entry.path)
                total -= entry.size
        return total - self.most

    def _entries(self) -> Iterator[_Entry]:
        """What lies in the folder, parts of files included."""
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # another process may have removed it
                    status = entry.stat(follow_symlinks=False)
                    if entry.is_file(follow_symlinks=False):
                        yield _Entry(status.st_atime_ns, Path(entry.path), status.st_size)


def _being_written(parts: list[Path]) -> bool:
    return any(not is_abandoned(part) for part in parts if part.exists())


def _reserved(path: Path, size: int) -> PartFile:
    """A file on its way that has its size from the beginning, so that others count it."""
    part = PartFile(path)
    try:
        with storage_errors(f"cannot write {path}"):
            part.stream.truncate(size)
    except BaseException:
        part.discard()
        raise
    return part
