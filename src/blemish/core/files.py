"""Files that are complete or not there, whenever a process, or the machine, stops.

A file is written under another name, sent to the disk, and renamed. On its way it is locked; what a killed process left
is therefore known by its name and the missing lock, and removed by the next one that writes there. Links are never
followed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import re
import secrets
import shutil
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from blemish.core.errors import StorageError
from blemish.core.locks import is_abandoned, same_file, try_lock

_log = logging.getLogger(__name__)

STAGING = ".blemish-unfinished"
"""The folder, in a folder of results, in which unfinished files stand."""

FOLDER_LOCK = ".blemish-lock"
"""The file that is locked for as long as an unfinished folder is being filled."""

_PART = ".part"
_TOKEN_BYTES = 8
_PART_NAME = re.compile(rf"\.[0-9a-f]{{{2 * _TOKEN_BYTES}}}\.part\Z")

# Files that are open at the same time, and threads that send them to the disk: it takes many at once as fast as one.
_TOGETHER, _SENDING = 64, 8

# Of a name in front of the token; file systems end names at 255 bytes.
_NAME_BYTES = 200

_WINDOWS = os.name == "nt"

_NO_FOLDER_SYNC = (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EACCES, errno.EPERM, errno.EISDIR)


@dataclass(frozen=True)
class Digest:
    """What tells a file from others: its size and a hash of its content."""

    size: int
    hash: str


def digest_of(content: bytes) -> Digest:
    """The digest of a whole file in memory."""
    return Digest(len(content), hashlib.blake2b(content, digest_size=16).hexdigest())


def file_digest(path: Path) -> Digest | None:
    """The digest of a file; None where there is no regular file, or it cannot be read."""
    if not path.is_file():
        return None
    state, size = hashlib.blake2b(digest_size=16), 0
    try:
        with path.open("rb") as stream:
            while content := stream.read(2**20):
                state.update(content)
                size += len(content)
    except OSError:
        return None
    return Digest(size, state.hexdigest())


def unwritable(path: Path, error: OSError) -> StorageError:
    """The error for a file that cannot be written; it names a disk that is full."""
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        reason += _free_space(path)
    return StorageError(f"cannot write {path}: {reason}")


def _free_space(path: Path) -> str:
    with contextlib.suppress(OSError, StopIteration):
        mount = next(folder for folder in path.absolute().parents if os.path.ismount(folder))
        return f" (the disk at {mount} has {shutil.disk_usage(mount).free:,} bytes left)"
    return ""


_of_this_process: weakref.WeakSet[PartFile] = weakref.WeakSet()


class PartFile:
    """A file on its way: `write`, or ``stream``, writes to ``path``, and `finish` gives it its final name."""

    def __init__(self, final: Path, *, destination: Path | None = None) -> None:
        self.final = final
        _of_this_process.add(self)
        with _storage_errors(final):
            if destination is None:
                final.parent.mkdir(parents=True, exist_ok=True)
                remove_abandoned(part_files(final.parent, _prefix(final)))
            folder, prefix = (final.parent, _prefix(final)) if destination is None else (destination / STAGING, "")
            while True:
                self.path = folder / f"{prefix}{secrets.token_hex(_TOKEN_BYTES)}{_PART}"
                self.stream: IO[bytes] = self.path.open("xb")
                # Not ours where somebody looked for what killed processes left just before we locked it.
                if try_lock(self.stream.fileno()) is not False and same_file(self.stream.fileno(), self.path):
                    return
                self.stream.close()

    def write(self, content: bytes | bytearray | memoryview) -> None:
        """Append to it."""
        with _storage_errors(self.final):
            self.stream.write(content)

    def sync(self) -> None:
        """Send the content to the disk; a rename may otherwise arrive there before it."""
        with _storage_errors(self.final):
            self.stream.flush()
            os.fsync(self.stream.fileno())

    def rename(self) -> None:
        """Give it its final name, making the folder if need be."""
        with _storage_errors(self.final):
            self.stream.flush()
            if _WINDOWS:  # which renames no open files
                self.stream.close()
            try:
                self.path.replace(self.final)
            except FileNotFoundError:
                self.final.parent.mkdir(parents=True, exist_ok=True)
                self.path.replace(self.final)
            self.stream.close()  # and so unlocked, when nobody can take the file for abandoned any more

    def finish(self) -> None:
        """Make it stand under its final name, complete, even if the machine stops at once."""
        self.sync()
        self.rename()
        with _storage_errors(self.final):
            sync_folder(self.final.parent)

    def discard(self) -> None:
        """Remove it, unless it is finished."""
        # The reason why it could not be written may also keep it from being closed or removed.
        if _WINDOWS:
            with contextlib.suppress(OSError):
                self.stream.close()
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.stream.close()


def discard_own(folder: Path) -> None:
    """Remove the unfinished files of this process in a folder: Ctrl-C may come before anybody else could do so."""
    for part in list(_of_this_process):
        if "stream" in vars(part) and part.path.parent == folder:
            part.discard()


@contextlib.contextmanager
def _storage_errors(final: Path) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise unwritable(final, error) from None  # the message says it all


def sync_folder(folder: Path) -> None:
    """Send the names in a folder to the disk, where the system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def staging_path(destination: Path, name: str) -> Path:
    """A name for a file of one's own in the staging folder of a destination, which is removed with it."""
    return destination / STAGING / f"{name}-{secrets.token_hex(_TOKEN_BYTES)}"


def _prefix(final: Path) -> str:
    return f".{os.fsdecode(os.fsencode(final.name)[:_NAME_BYTES])}."


def part_files(folder: Path, prefix: str = ".") -> list[Path]:
    """The files in a folder that are, or were, on their way to names in it."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return [
            Path(entry.path) for entry in entries if entry.name.startswith(prefix) and _PART_NAME.search(entry.name)
        ]
    return []


def remove_abandoned(paths: Iterable[Path]) -> None:
    """Remove those of some unfinished files, or folders with a lock in them, that nobody writes any more."""
    for path in paths:
        with contextlib.suppress(OSError):
            if path.is_dir() and not path.is_symlink():
                if is_abandoned(path / FOLDER_LOCK):
                    _log.info("removing unfinished %s", path)
                    shutil.rmtree(path, ignore_errors=True)  # which does not follow links
            elif is_abandoned(path):
                _log.info("removing unfinished %s", path)
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def part_file(final: Path, *, destination: Path | None = None) -> Iterator[PartFile]:
    """A file to be written and finished; otherwise it is removed at the end.

    On its way it stands in the staging folder of ``destination``; for a file on its own, beside its final place.
    """
    part = PartFile(final, destination=destination)
    try:
        with _storage_errors(final):
            yield part
    finally:
        part.discard()


def write_bytes(final: Path, content: bytes, *, destination: Path | None = None) -> None:
    """Write a whole file that is either complete under its final name or not there."""
    with part_file(final, destination=destination) as part:
        part.write(content)
        part.finish()


def write_files(contents: Iterable[tuple[Path, bytes]], *, destination: Path) -> Iterator[tuple[Path, Digest]]:
    """Write many files as `write_bytes` does, and give their digests.

    They are sent to the disk together, while the next ones are made: one by one each would wait for the disk. After a
    power failure some of the last ones may be missing; none is damaged.
    """
    pending: list[tuple[PartFile, Digest, Future[None]]] = []
    try:
        with ThreadPoolExecutor(_SENDING) as threads:
            for final, content in contents:
                part = PartFile(final, destination=destination)
                pending.append((part, digest_of(content), threads.submit(_send, part, content)))
                if len(pending) == _TOGETHER:
                    yield from _finished(pending)
                    pending.clear()
            yield from _finished(pending)
    finally:
        for part, *_ in pending:
            part.discard()


def _send(part: PartFile, content: bytes) -> None:
    part.write(content)
    part.sync()


def _finished(pending: list[tuple[PartFile, Digest, Future[None]]]) -> list[tuple[Path, Digest]]:
    for _, _, sent in pending:
        sent.result()
    for part, *_ in pending:
        part.rename()
    return [(part.final, digest) for part, digest, _ in pending]
