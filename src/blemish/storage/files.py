"""Atomic files, and a destination folder that one run at a time writes to.

A file is first written to a staging folder inside the destination and then moved into place, so what stands under its
final name is always complete. What a killed run left in the staging folder is removed by the next one.
"""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from PIL import Image

from blemish.types import InputError

__all__ = [
    "ORIENTATION",
    "STAGING",
    "check_folder",
    "encode_picture",
    "held_folder",
    "place",
    "staged_destination",
    "staging_path",
    "write_bytes",
]

STAGING = ".blemish-unfinished"

ORIENTATION = 0x0112
"""The EXIF tag that says how a picture is to be turned for viewing."""

_numbers = itertools.count()

_ATTEMPTS, _PAUSE = 20, 0.002


def encode_picture(picture: Image.Image, file_format: str, *, orientation: int | None = None) -> bytes:
    """A picture as the bytes of a file: JPEG of quality 85, as ImageNet-C was published, or PNG."""
    # Pixels are corrupted as stored, so the copy has to be turned for viewing just like the original.
    exif = Image.Exif()
    if orientation is not None:
        exif[ORIENTATION] = orientation
    buffer = io.BytesIO()
    if file_format == "jpeg":
        picture.save(buffer, "JPEG", quality=85, exif=exif)
    else:
        picture.save(buffer, "PNG", compress_level=4, exif=exif)
    return buffer.getvalue()


def check_folder(target: Path) -> None:
    """Refuse a destination that is not a folder, or not ours to write to, before any work."""
    existing = next(path for path in (target, *target.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise InputError(f"{existing} is a file; expected a folder to write to")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to {existing}: no permission")


def staging_path(destination: Path, final: Path) -> Path:
    """A temporary name, unique among processes, on the file system of the destination."""
    return destination / STAGING / f"{os.getpid()}-{next(_numbers)}-{final.name}"


def write_bytes(final: Path, content: bytes, *, destination: Path | None = None) -> None:
    """Write a whole file that is either complete under its final name or not there.

    On its way it stands in the staging folder of ``destination``; for a file on its own, beside its final place.
    """
    beside = final.with_name(f".{final.name}.{os.getpid()}.part")
    temporary = beside if destination is None else staging_path(destination, final)
    try:
        if destination is None:
            final.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        place(temporary, final)
    except OSError as error:
        raise InputError(f"cannot write {final}: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):  # the reason why it could not be written may also keep it from being removed
            temporary.unlink(missing_ok=True)


def place(temporary: Path, final: Path) -> None:
    """Move a finished file to its final name, making its folder if need be."""
    try:
        temporary.replace(final)
    except FileNotFoundError:
        final.parent.mkdir(parents=True, exist_ok=True)
        temporary.replace(final)


@contextlib.contextmanager
def staged_destination(destination: Path) -> Iterator[None]:
    """Make the destination and its staging folder, and hold it against a second run for as long as this one lasts."""
    staging = destination / STAGING
    with _held(staging / "lock", destination):
        try:
            _clear(staging)
            yield
        finally:
            shutil.rmtree(staging, ignore_errors=True)


@contextlib.contextmanager
def held_folder(destination: Path, share: str = "") -> Iterator[None]:
    """Make a folder and hold it, or one's ``share`` of it, against a second run for as long as this one lasts."""
    check_folder(destination)
    path = destination / f".blemish-lock{f'-{share}' if share else ''}"
    with _held(path, destination):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


@contextlib.contextmanager
def _held(path: Path, destination: Path) -> Iterator[None]:
    """Hold a lock file, which the run that held it last may be removing at this moment."""
    reason = "its lock is removed again and again"
    for _ in range(_ATTEMPTS):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = path.open("w")
        except (FileExistsError, FileNotFoundError) as error:  # its folder may have gone between two steps
            reason = error.strerror or str(error)
            time.sleep(_PAUSE)
            continue
        except OSError as error:
            raise InputError(f"cannot write to {destination}: {error.strerror or error}") from error
        with lock:
            _hold(lock, destination)
            if _is_at(lock, path):
                yield
                return
    raise InputError(f"cannot write to {destination}: {reason}")


def _is_at(lock: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock.fileno()), path.stat())
    except OSError:
        return False


def _clear(staging: Path) -> None:
    for left_over in staging.iterdir():
        if left_over.name != "lock":
            left_over.unlink(missing_ok=True)


def _hold(lock: IO[str], destination: Path) -> None:
    """Take a lock that the system gives back when the process ends, however it ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows; there the caller has to see to it
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise InputError(
                f"another run is writing to {destination}; wait for it, or choose another folder"
            ) from error
