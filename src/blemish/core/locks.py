"""Locks on files: the system gives them back when a process ends, however it ends.

So they tell the living from the dead. They hold between processes, containers and, on most network file systems,
machines; numbers of processes do not.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from blemish.core.errors import StorageError

_ATTEMPTS, _PAUSE = 20, 0.002

# Where the file system knows no locks, only age tells; no file takes longer to be written.
_ABANDONED_SECONDS = 24 * 3600

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def try_lock(descriptor: int, *, shared: bool = False) -> bool | None:
    """Whether an open file is ours from now on; None where the system knows no locks. Closing it gives it back.

    A ``shared`` lock may be held by many at a time, and keeps off those who want the file for themselves.
    """
    try:
        import fcntl
    except ImportError:  # not on Windows
        return None
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def same_file(descriptor: int, path: Path) -> bool:
    """Whether an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except OSError:
        return False


@contextlib.contextmanager
def locked(path: Path, folder: Path, *, patience: float = _ATTEMPTS * _PAUSE) -> Iterator[None]:
    """Hold ``folder`` by a lock file, which is made if need be and removed at the end; refused where others hold it.

    Whoever held it last may be removing it, or looking whether it is abandoned, at this very moment; so it is tried for
    ``patience`` seconds.
    """
    busy = f"another run is writing to {folder}; wait for it, or choose another folder"
    reason = busy
    for _ in range(max(1, round(patience / _PAUSE))):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_FOLLOW, 0o666)
        except (FileExistsError, FileNotFoundError) as error:  # its folder may have gone between two steps
            reason = f"cannot write to {folder}: {error.strerror or error}"
            time.sleep(_PAUSE)
            continue
        except OSError as error:
            raise StorageError(f"cannot write to {folder}: {error.strerror or error}") from error
        try:
            if try_lock(descriptor) is not False and same_file(descriptor, path):
                try:
                    yield
                finally:
                    with contextlib.suppress(OSError):
                        path.unlink(missing_ok=True)
                return
        finally:
            os.close(descriptor)
        reason = busy
        time.sleep(_PAUSE)
    raise StorageError(reason)


def is_abandoned(path: Path) -> bool:
    """Whether nobody is writing a file any more. What is no regular file, such as a link, is nobody's work."""
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return True
        descriptor = os.open(path, os.O_RDWR | _NO_FOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return _is_old(path)
    try:
        free = try_lock(descriptor)
        # A finished file has lost this name before its lock.
        return same_file(descriptor, path) and (_is_old(path) if free is None else free)
    finally:
        os.close(descriptor)


def remove_unused(path: Path) -> bool:
    """Remove a file that nobody holds by a lock, and say whether it was removed."""
    try:
        descriptor = os.open(path, os.O_RDWR | _NO_FOLLOW)
    except OSError:
        return False
    try:
        free = try_lock(descriptor)
        if not same_file(descriptor, path) or not (_is_old(path) if free is None else free):
            return False
        path.unlink()  # while it is locked: nobody can begin to use it in between
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime > _ABANDONED_SECONDS
    except OSError:
        return False
