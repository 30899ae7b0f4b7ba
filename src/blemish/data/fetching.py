"""Fetching files from elsewhere, whole or not at all: in pieces, several at a time, each tried again when it fails."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from blemish.core.ahead import ahead
from blemish.core.errors import BlemishError, InputError, StorageError, first_line
from blemish.core.file_cache import FileCache
from blemish.core.files import PartFile
from blemish.core.optional import optional_import
from blemish.core.user_folders import cache_folder

Result = TypeVar("Result")

FOLDER, GIGABYTES = "BLEMISH_REMOTE_CACHE", "BLEMISH_REMOTE_CACHE_GB"
"""The environment variables that name the folder of fetched files and its bound."""

SCHEMES = ("s3", "gs", "hf", "https", "http")

_log = logging.getLogger(__name__)

_DEFAULT_GIGABYTES = 50.0
_PIECE = 2**23
_PIECES_AHEAD = 2
_CONNECTIONS = threading.BoundedSemaphore(16)

# Seconds between one attempt and the next.
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)

# What file systems call that which changes when a file does.
_VERSIONS = ("ETag", "etag", "generation", "blob_id", "Content-MD5", "Digest", "LastModified", "Last-Modified", "mtime")

_ADDRESS = re.compile(r"[a-z][a-z0-9]*://[^\s'\"<>)]+", re.IGNORECASE)

# Answers of servers that another attempt does not change.
_FINAL, _MISSING = (400, 401, 403, 405), (404, 410)


def is_address(data: str | os.PathLike[str]) -> bool:
    """Whether a text is the address of something that is not on this machine."""
    return isinstance(data, str) and data.partition("://")[0].lower() in SCHEMES and "://" in data


def shown_address(address: str) -> str:
    """An address without what may be secret: a password, or a signature behind a question mark.

    >>> shown_address("https://me:word@example.org/val.tar?signature=x")
    'https://example.org/val.tar'
    """
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def file_system(address: str) -> tuple[Any, str]:
    """The fsspec file system of an address, and the path in it."""
    core = optional_import("fsspec.core")
    try:
        system, path = core.url_to_fs(address)
    except ImportError as error:
        raise InputError(
            f"{shown_address(address)}: {first_line(error)}; install it with: pip install 'blemish[remote]'"
        ) from error
    except (ValueError, OSError) as error:
        raise InputError(f"{shown_address(address)}: not a usable address ({first_line(error)})") from error
    return system, path


def patiently(name: str, work: Callable[[], Result]) -> Result:
    """What work gives; it is tried again when it fails in a way that may pass."""
    for pause in (*_PAUSES, None):
        try:
            with _CONNECTIONS:
                return work()
        except BlemishError:
            raise
        except Exception as raised:  # libraries for networks raise almost anything
            error = _behind(raised)
            if isinstance(error, FileNotFoundError) or getattr(error, "status", None) in _MISSING:
                raise InputError(f"{name}: no such file") from error
            if _is_final(error):
                raise InputError(f"{name}: cannot be read ({_reason(error)})") from error
            if pause is None:
                raise StorageError(
                    f"{name}: cannot be fetched ({type(error).__name__}: {_reason(error)}); tried "
                    f"{len(_PAUSES) + 1} times"
                ) from error
            _log.info("%s: %s; trying again in %g s", name, _reason(error), pause)
            time.sleep(pause)
    raise AssertionError("unreachable")


def _behind(error: Exception) -> Exception:
    """What is behind an error: fsspec says of web servers that files are not there, whatever the matter is."""
    cause = error.__cause__
    if not isinstance(error, FileNotFoundError) or not isinstance(cause, Exception):
        return error
    of_the_way = isinstance(cause, (ConnectionError, TimeoutError)) or type(cause).__module__.startswith("aiohttp")
    return cause if of_the_way else error


def _reason(error: Exception) -> str:
    """What an error says; of the addresses in it, what `shown_address` shows."""
    return _ADDRESS.sub(lambda match: shown_address(match[0]), first_line(error))


def _is_final(error: Exception) -> bool:
    return (
        isinstance(error, (PermissionError, NotImplementedError, ImportError))
        or getattr(error, "status", None) in _FINAL
        or type(error).__name__ in ("NoCredentialsError", "InvalidURL")
    )


class _ShortReadError(OSError):
    """Fewer bytes than there should be."""


class RemoteFile:
    """A file elsewhere, as it is now; it is fetched into a cache when it is needed."""

    def __init__(self, address: str, *, fresh: bool = True) -> None:
        """What a file system has remembered of its files is not trusted, unless it was made to forget (``fresh``)."""
        self.name = shown_address(address)
        self._system, self._path = file_system(address)
        # File systems that open a file for it would read ahead, and throw that away.
        self._how = {} if getattr(self._system, "async_impl", False) else {"cache_type": "none"}
        self._size, self._version = self._state(fresh=fresh)
        # What cannot be told from a later version is not used by another run.
        mark = self._version or secrets.token_hex(8)
        self.stamp = f"{self.name}|{self._size}|{mark}|"
        digest = hashlib.blake2b(self.stamp.encode(), digest_size=16).hexdigest()
        self._key = digest + Path(urlsplit(self.name).path).suffix

    @contextlib.contextmanager
    def held(self) -> Iterator[Path]:
        """The fetched file; messages about it name its address."""
        with fetched_files(*_settings()).held(self._key, self._size, self._fetch, title=self.name) as path:
            try:
                yield path
            except InputError as error:
                if str(path) not in str(error):
                    raise
                raise InputError(str(error).replace(str(path), self.name)) from error

    def _state(self, *, fresh: bool = True) -> tuple[int, str | None]:
        def ask() -> Any:
            if fresh:
                self._system.invalidate_cache()
            return self._system.info(self._path)

        info = patiently(self.name, ask)
        if info.get("type") == "directory":
            raise InputError(f"{self.name}: a folder; expected a file")
        size = info.get("size")
        if not isinstance(size, int) or size < 0:
            raise InputError(f"{self.name}: its server does not tell how long it is; expected one that does")
        if size == 0:
            raise InputError(f"{self.name}: an empty file")
        version = next((str(info[key]) for key in _VERSIONS if info.get(key)), None)
        return size, version

    def _fetch(self, part: PartFile) -> None:
        _log.info("fetching %s, %d bytes", self.name, self._size)
        part.stream.seek(0)
        first = self._piece(0, whole=True)
        part.write(first)
        count = 1 if len(first) == self._size else -(-self._size // _PIECE)
        with contextlib.closing(ahead(lambda i: self._piece(i + 1), count - 1, _PIECES_AHEAD)) as pieces:
            for piece in pieces:
                part.write(piece)
        if self._state() != (self._size, self._version):
            raise InputError(f"{self.name}: was changed while it was being fetched; begin again when it is complete")

    def _piece(self, number: int, *, whole: bool = False) -> bytes:
        """Some bytes of the file, all of them; some servers give the ``whole`` file whatever they are asked for."""
        start, stop = number * _PIECE, min(self._size, (number + 1) * _PIECE)

        def read() -> bytes:
            content = bytes(self._system.cat_file(self._path, start=start, end=stop, **self._how))
            if len(content) != stop - start and not (whole and len(content) == self._size):
                raise _ShortReadError(f"{len(content):,} bytes of {stop - start:,} came")
            return content

        return patiently(self.name, read)


def _settings() -> tuple[Path, int]:
    text = os.environ.get(GIGABYTES) or str(_DEFAULT_GIGABYTES)
    try:
        most = int(float(text) * 2**30)
    except (ValueError, OverflowError):
        most = 0
    if most < 1:
        raise InputError(f"{GIGABYTES} is {text!r}; expected a number of gigabytes, such as 20")
    return Path(os.environ.get(FOLDER) or cache_folder() / "remote"), most


@lru_cache(maxsize=8)
def fetched_files(folder: Path, most: int) -> FileCache:
    """The cache of fetched files; threads of this process share it."""
    return FileCache(folder, most, advice=f"set {GIGABYTES} to more, or {FOLDER} to a folder on a larger disk")
