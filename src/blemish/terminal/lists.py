"""Lists as people type them: separated by commas, and options that may be repeated."""

from __future__ import annotations

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
