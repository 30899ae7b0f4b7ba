"""Texts of others as texts that are safe to show and to store: names of files, of classes, of models, and messages."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Sequence

_SURROGATE = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    r"""One line that a terminal shows and never obeys.

    Control characters (escape sequences, line ends), marks that turn the direction of writing and what cannot be
    encoded become escapes, in the way of JSON, so that JSON stays what it is.

    >>> printable("a\x1b[31m\nb")
    'a\\u001b[31m\\nb'
    """
    if text.isprintable():
        return text
    return "".join(sign if _harmless(sign) else json.dumps(sign)[1:-1] for sign in text)


def _harmless(sign: str) -> bool:
    # Python does not count spaces of other widths as printable, which cameras and systems put into names.
    return sign.isprintable() or unicodedata.category(sign) == "Zs"


def printable_lines(text: str) -> str:
    """Several lines, each of them printable."""
    return "\n".join(printable(line) for line in text.split("\n"))


def as_text(name: str) -> str:
    r"""A name that every file can hold: bytes of a name that are not UTF-8 become escapes.

    >>> as_text("caf\udce9.png")
    'caf\\xe9.png'
    """
    return name if name.isascii() else _SURROGATE.sub(_escaped, name)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def first_few(items: Sequence[str], count: int) -> str:
    """The first of many names in one line, and how many there are beside.

    >>> first_few(["fog", "snow", "frost"], 2)
    'fog, snow and 1 more'
    """
    return ", ".join(items[:count]) + (f" and {len(items) - count} more" if len(items) > count else "")
