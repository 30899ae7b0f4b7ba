"""Settings that decide numbers, compared with those that a folder of results was made with: one way for everybody."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.reading import read_json
from blemish.core.typed import as_json, read_typed

Settings = TypeVar("Settings")

_SHOWN = 80
_LISTED = 3


def differences(before: Any, after: Any, name: str = "") -> list[str]:
    """What differs between two settings (dictionaries, or dataclasses for files), each as "field was …, now …".

    >>> differences({"seed": 0, "crop": 224}, {"seed": 1, "crop": 224})
    ['seed was 0, now 1']
    """
    return [f"{field} was {was}, now {now}" for field, was, now in differing(before, after, name)]


def differing(before: Any, after: Any, name: str = "") -> list[tuple[str, str, str]]:
    """The fields in which two settings differ, with both values as texts."""
    before, after = (as_json(value, compared=True) for value in (before, after))
    if isinstance(before, dict) and isinstance(after, dict):
        fields = dict.fromkeys([*before, *after])
        return [
            entry
            for field in fields
            for entry in differing(before.get(field), after.get(field), f"{name}.{field}" if name else str(field))
        ]
    if before == after:
        return []
    texts = ["not set" if value is None else json.dumps(value, ensure_ascii=False) for value in (before, after)]
    same = next((i for i, (one, two) in enumerate(zip(*texts, strict=False)) if one != two), min(map(len, texts)))
    return [(name, _excerpt(texts[0], same), _excerpt(texts[1], same))]


def listed(lines: Sequence[str]) -> str:
    """The first few differences in one line."""
    more = f"; and {len(lines) - _LISTED} more" if len(lines) > _LISTED else ""
    return "; ".join(lines[:_LISTED]) + more


def keep_settings(path: Path, settings: Settings, *, holds: str, growing: Collection[str] = ()) -> Settings:
    """Write down what a folder is made with, a dataclass, or raise if it was made with other settings.

    ``holds`` says what there would be then. Fields in ``growing`` may differ, and are written anew. The settings are
    returned as they are in the file.
    """
    text = json.dumps(as_json(settings), indent=1, sort_keys=True) + "\n"
    wanted = read_typed(type(settings), json.loads(text))
    if path.exists():
        try:
            present = read_typed(type(settings), read_json(path))
        except InputError as error:
            raise InputError(f"{path}: not readable ({error}); choose another folder") from error
        before, after = as_json(present, compared=True), as_json(wanted, compared=True)
        lines = [
            line
            for name in {**before, **after}
            if name not in growing
            for line in differences(before.get(name), after.get(name), name)
        ]
        if lines:
            raise InputError(f"{path.parent}: holds {holds} ({listed(lines)}); choose another folder")
        if present == wanted:
            return wanted
    write_bytes(path, text.encode(), destination=path.parent)
    return wanted


def _excerpt(text: str, same: int) -> str:
    """A long text around the position where it begins to differ from the other."""
    if len(text) <= _SHOWN:
        return text
    start = max(0, min(same - _SHOWN // 4, len(text) - _SHOWN))
    end = "…" if start + _SHOWN < len(text) else ""
    return f"{'…' if start else ''}{text[start : start + _SHOWN]}{end}"
