"""Settings that decide numbers, compared with those that a folder of results was made with: one way for everybody."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["differences", "first_differences"]

_SHOWN = 80
_LISTED = 3


def differences(before: Any, after: Any, name: str = "") -> list[str]:
    """What differs between two settings, each as "field was …, now …".

    >>> differences({"seed": 0, "crop": 224}, {"seed": 1, "crop": 224})
    ['seed was 0, now 1']
    """
    if isinstance(before, dict) and isinstance(after, dict):
        fields = dict.fromkeys([*before, *after])
        return [
            line
            for field in fields
            for line in differences(before.get(field), after.get(field), f"{name}.{field}" if name else str(field))
        ]
    if before == after:
        return []
    texts = ["not set" if value is None else json.dumps(value, ensure_ascii=False) for value in (before, after)]
    same = next((i for i, (one, two) in enumerate(zip(*texts, strict=False)) if one != two), min(map(len, texts)))
    was, now = (_excerpt(text, same) for text in texts)
    return [f"{name} was {was}, now {now}"]


def first_differences(before: Any, after: Any) -> str:
    """The first few differences in one line; empty where there are none."""
    lines = differences(before, after)
    more = f"; and {len(lines) - _LISTED} more" if len(lines) > _LISTED else ""
    return "; ".join(lines[:_LISTED]) + more


def _excerpt(text: str, same: int) -> str:
    """A long text around the position where it begins to differ from the other."""
    if len(text) <= _SHOWN:
        return text
    start = max(0, min(same - _SHOWN // 4, len(text) - _SHOWN))
    end = "…" if start + _SHOWN < len(text) else ""
    return f"{'…' if start else ''}{text[start : start + _SHOWN]}{end}"
