"""Errors by their cause: the caller's input, the disk, a lost worker; and notices of what was assumed for the user."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

_HERE = str(Path(__file__).parents[1])


class BlemishError(Exception):
    """The base of all errors of this package."""


class InputError(BlemishError, ValueError):
    """Input that cannot be used. The message names it, and says what was expected."""


class UnknownNameError(InputError, KeyError):
    """A name that a mapping does not hold."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would quote it


class StorageError(BlemishError, OSError):
    """Files that cannot be written, kept or fetched: no permission, a full disk, a folder in use, damage."""


class WorkerError(BlemishError, RuntimeError):
    """Workers that were lost (killed, or their machine is gone), or that cannot start."""


class Notice(UserWarning):
    """What was assumed for the user, who may know better. Commands print it; in Python it is a warning."""


def notify(message: str) -> None:
    """Tell the user once, as a warning at the line of their code that led here."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, Notice, stacklevel=level)


def brief(value: object) -> str:
    """A value as error messages show it: its repr, unless that is very long.

    >>> brief("three"), brief(10**100)
    ("'three'", '1000000000…0000000000 (101 characters)')
    """
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole numbers of more than a few thousand digits
        return f"<{type(value).__name__}, too long to write>"
    return text if len(text) <= 80 else f"{text[:10]}…{text[-10:]} ({len(text)} characters)"


@contextlib.contextmanager
def refused(message: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of these kinds, by default of all, into an `InputError`: the message, and the reason in brackets."""
    caught = kinds or (Exception,)
    try:
        yield
    except BlemishError:
        raise
    except caught as error:
        raise InputError(f"{message} ({getattr(error, 'strerror', None) or first_line(error)})") from error


@contextlib.contextmanager
def storage_errors(message: str) -> Iterator[None]:
    """Turn errors of the system into a `StorageError`: the message, and the reason."""
    try:
        yield
    except BlemishError:
        raise
    except OSError as error:
        raise StorageError(f"{message}: {error.strerror or error}") from error


@contextlib.contextmanager
def about(name: str) -> Iterator[None]:
    """Put a name in front of the messages of input errors."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def first_line(error: BaseException) -> str:
    """The first line of an error's message; its type where it has none."""
    return _lines(error)[0]


def last_line(error: BaseException) -> str:
    """The last line of an error's message; its type where it has none."""
    return _lines(error)[-1]


def _lines(error: BaseException) -> list[str]:
    return [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
