"""Texts from data as they are shown: nothing in them that cannot be written or seen."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

# Direction marks in a file's name could make a page read differently from what it says.
_SHOWN = {code: f"\\u{code:04x}" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F)}
_SHOWN |= dict.fromkeys((*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F), "\ufffd")


def visible(text: str) -> str:
    """A text without what cannot be written or seen: lone surrogates, control characters and direction marks."""
    # Lone surrogates stand for the bytes of file names that are not UTF-8.
    return text.encode("utf-8", "replace").decode("utf-8").translate(_SHOWN)


def soft(text: object) -> Markup:
    """A text in which names may be broken after their signs, but options, and numbers before their %, may not.

    >>> str(soft("gaussian_noise & fog"))
    'gaussian_<wbr>noise &amp; fog'
    """
    parts = re.split(r"(?<=[_/:+])(?=\w)", _UNIT.sub("\N{NO-BREAK SPACE}%", visible(str(text))))
    return Markup("<wbr>").join(_with_options(part) for part in parts)


_UNIT = re.compile(r"(?<=\d) %")
_OPTION = re.compile(r"(--[a-z][a-z-]*)")


def _with_options(text: str) -> Markup:
    """Options of commands would be broken after their hyphens."""
    pieces = enumerate(_OPTION.split(text))
    return Markup("").join(
        Markup('<span class="whole">{}</span>').format(piece) if number % 2 else escape(piece)
        for number, piece in pieces
    )
