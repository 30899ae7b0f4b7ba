"""Files that nobody wants to be given, and a limit on the time that refusing them may take."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

__all__ = ["SPECIAL", "hostile_contents", "not_for_ever", "place_special"]


_FOR_EVER = 120  # seconds, where all of this takes parts of one; no measure of speed


@contextlib.contextmanager
def not_for_ever() -> Iterator[None]:
    """An error, not a test that never ends, where something waits for ever or takes for ever."""

    def stop(number: int, frame: object) -> NoReturn:
        raise TimeoutError(f"not finished after {_FOR_EVER} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(_FOR_EVER)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def hostile_contents(valid: bytes) -> dict[str, bytes]:
    """Contents of files by name; ``valid`` is what a reader expects."""
    middle = len(valid) // 2
    return {
        "empty": b"",
        "half": valid[:middle],
        "one byte short": valid[:-1],
        "a byte changed": valid[:middle] + bytes([valid[middle] ^ 0x55]) + valid[middle + 1 :] if valid else b"?",
        "more behind it": valid + b"\0" * 100,
        "random": random.Random(0).randbytes(3000),
        "zeros": bytes(3000),
        "brackets": b"[" * 100_000,
        "braces": b'{"a":' * 100_000,
        "toml brackets": b"a = " + b"[" * 100_000,
        "digits": b"9" * 5000,
        "toml digits": b"a = " + b"9" * 5000,
        "toml hex digits": b"a = 0x" + b"f" * 9000,
        "toml key": b"a" + b".a" * 100_000 + b" = 1",
        "json digits": b'{"a": ' + b"9" * 5000 + b"}",
        "json infinity": b'{"a": 1e999}',
        "a number": b"1",
        "null": b"null",
        "a list": b"[]",
        "an object": b"{}",
        "csv digits": b"file,class_index\na.png," + b"9" * 5000 + b"\n",
        "csv quote": b'a,b\n"' + b"x" * 200_000,
        "not UTF-8": b'{"name": "caf\xe9"}\n' + valid,
        "byte order mark": b"\xef\xbb\xbf" + valid,
        "UTF-16": b"\xff\xfe" + "name".encode("utf-16-le"),
        "a NUL within": valid[:middle] + b"\0" + valid[middle:],
        "an escape": b"\x1b]0;owned\x07" + valid,
    }


def _nothing(path: Path) -> None:
    """Leave the place empty."""


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def _to_itself(path: Path) -> None:
    path.symlink_to(path.name)


SPECIAL: dict[str, Callable[[Path], None]] = {
    "nothing": _nothing,
    "folder": _folder,
    "pipe": _pipe,
    "endless device": _link("/dev/zero"),
    "kernel log": _link("/proc/kmsg"),
    "empty device": _link("/dev/null"),
    "terminal": _link("/dev/tty"),
    "link to nothing": _link("gone"),
    "link to itself": _to_itself,
}


def place_special(kind: str, path: Path) -> None:
    """Put something that is no regular file at a path."""
    SPECIAL[kind](path)
