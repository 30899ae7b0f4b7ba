"""Reading files that somebody else has named: regular files only, and texts without numbers that break Python.

A pipe would be waited for, a device never ends, and merely opening one can have effects; a link may lead to either.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
import tomllib
from pathlib import Path
from typing import IO, Any

from blemish.core.errors import InputError, refused

MAX_BYTES = 2**31
"""The largest file that is read as a whole."""

_MAX_TEXT = 2**28
_WHOLE_BITS = 64
# TOML's keys of many parts cost tomllib the square of their number.
_MAX_PARTS = 32
_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:{_PART}){{{_MAX_PARTS}}}")

Name = str | os.PathLike[str]


def _kind(path: Name) -> int:
    """What stands at a path: the type of file, 0 where there is nothing, or nothing that can be asked about."""
    try:
        return stat.S_IFMT(Path(path).stat().st_mode)
    except (OSError, ValueError):  # also names that are too long, or hold a NUL
        return 0


def is_file(path: Name) -> bool:
    """Whether a regular file is there; unlike pathlib, without an error for names that no file can have."""
    return stat.S_ISREG(_kind(path))


def is_folder(path: Name) -> bool:
    """Whether a folder is there."""
    return stat.S_ISDIR(_kind(path))


def is_link(path: Name) -> bool:
    """Whether a symbolic link is there, to whatever it leads."""
    try:
        return Path(path).is_symlink()
    except (OSError, ValueError):
        return False


def is_there(path: Name) -> bool:
    """Whether anything is there."""
    return _kind(path) != 0


def open_regular(path: Name) -> IO[bytes]:
    """A regular file with something in it, open for reading; nothing else is opened.

    Files that the system makes up, such as its log, say that they are empty, and may be waited for all the same.
    """
    stream = _opened(path)
    if os.fstat(stream.fileno()).st_size == 0:
        stream.close()
        raise InputError(f"{os.fspath(path)}: an empty file")
    return stream


def _opened(path: Name) -> IO[bytes]:
    descriptor, _ = _descriptor(path)
    try:
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _descriptor(path: Name) -> tuple[int, int]:
    """A regular file, opened, and its size."""
    name = os.fspath(path)
    try:
        _check_mode(name, os.stat(name).st_mode)  # noqa: PTH116  # pathlib takes no other names
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(name, flags)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{name}: no such file") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{name!r}: no such file ({error})") from error
    try:
        status = os.fstat(descriptor)
        _check_mode(name, status.st_mode)  # it may have been replaced in between
        return descriptor, status.st_size
    except BaseException:
        os.close(descriptor)
        raise


def _check_mode(name: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise InputError(f"{name}: is a folder; expected a file")
    if not stat.S_ISREG(mode):
        raise InputError(f"{name}: not a regular file; pipes, sockets and devices are not read")


def check_regular(path: Name) -> None:
    """Refuse what `open_regular` would not open, before a library opens it."""
    open_regular(path).close()


def read_bytes(path: Name, *, most: int = MAX_BYTES) -> bytes:
    """The content of a regular file, as long as the system says it is."""
    name = os.fspath(path)
    # Without a stream, which would ask the system twice as much: there may be thousands of small files.
    descriptor, size = _descriptor(path)
    try:
        if size > most:
            raise InputError(f"{name}: a file of {size:,} bytes; more than {most:,} are not read")
        with refused(f"{name}: cannot be read", OSError):
            parts, left = [], size
            while left and (content := os.read(descriptor, left)):
                parts.append(content)
                left -= len(content)
            return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        os.close(descriptor)


def read_text(path: Name) -> str:
    """The text of a file in UTF-8; a byte order mark at its beginning is left out."""
    content = read_bytes(path, most=_MAX_TEXT)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{os.fspath(path)}: not a text file in UTF-8 (byte {error.start})") from error


def read_json(path: Name, *, nan: bool = False) -> Any:
    """What a JSON file says; see `parse_json`."""
    content = read_bytes(path, most=_MAX_TEXT)  # JSON itself tells UTF-8 from UTF-16, which shells of Windows write
    with refused(f"{os.fspath(path)}: not readable as JSON", ValueError):
        return parse_json(content, nan=nan)


def parse_json(text: str | bytes, *, nan: bool = False) -> Any:
    """What a JSON text says; `ValueError` for anything that is wrong with it.

    Whole numbers beyond 64 bits and numbers that are infinite are refused: Python cannot convert or print some of
    them. So is NaN, which JSON does not know; with ``nan`` it is read as null.
    """
    try:
        return json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_null if nan else _no_number)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _whole(digits: str) -> int:
    if len(digits) > _WHOLE_BITS or not -(2**_WHOLE_BITS) < (number := int(digits)) < 2**_WHOLE_BITS:
        raise ValueError(f"a whole number of {len(digits)} digits")
    return number


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"the number {digits[:20]}, which is too large")
    return number


def _no_number(word: str) -> float:
    raise ValueError(f"{word} in place of a number")


def _null(word: str) -> float | None:
    return None if word == "NaN" else _no_number(word)


def read_toml(path: Name) -> dict[str, Any]:
    """What a TOML file says; see `parse_toml`."""
    text = read_text(path)
    with refused(f"{os.fspath(path)}: not readable as TOML", ValueError):
        return parse_toml(text)


def parse_toml(text: str) -> dict[str, Any]:
    """What a TOML text says; `ValueError` for anything that is wrong with it, such as numbers beyond 64 bits."""
    if _LONG_KEY.search(text):
        raise ValueError(f"a key of more than {_MAX_PARTS} parts")
    try:
        parsed = tomllib.loads(text)
        _check_numbers(parsed)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return parsed


def _check_numbers(value: Any) -> None:
    if isinstance(value, dict):
        for item in value.values():
            _check_numbers(item)
    elif isinstance(value, list):
        for item in value:
            _check_numbers(item)
    elif isinstance(value, int) and value.bit_length() > _WHOLE_BITS:
        # Python refuses to print numbers of many digits, so that not even a message could name it.
        raise ValueError(f"a whole number of {value.bit_length()} bits")
