"""Lists as people type them: separated by commas, and options that may be repeated."""

from __future__ import annotations

import re
from collections.abc import Iterable

from blemish.core.errors import InputError


def listed(texts: str | Iterable[str] | None) -> list[str]:
    """The parts of one text or several, without spaces around them.

    >>> listed(["fog, snow", "frost"])
    ['fog', 'snow', 'frost']
    """
    several = [texts] if isinstance(texts, str) else texts or ()
    return [part.strip() for text in several for part in text.split(",") if part.strip()]


def numbers(texts: str | Iterable[str], option: str, *, such_as: str) -> list[float]:
    """Numbers separated by commas, at least one; their range is checked where they are used."""
    parts = listed(texts)
    try:
        values = [float(part) for part in parts]
    except ValueError:
        values = []
    if not values:
        raise InputError(f"{option} {','.join(parts)!r}; expected numbers such as {such_as}")
    return values


def whole_numbers(text: str | None, option: str) -> list[int]:
    """Whole numbers separated by commas; none where nothing was said.

    >>> whole_numbers("43,44", "--seeds")
    [43, 44]
    """
    if text is None:
        return []
    parts = listed(text)
    if not parts or not all(re.fullmatch("[0-9]{1,9}", each) for each in parts):
        raise InputError(f"{option} {text!r}; expected whole numbers such as 43,44,45")
    return [int(each) for each in parts]
