"""Settings that lie in a folder beside those that are asked for now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["differing"]


def differing(found: Any, wanted: Mapping[str, Any]) -> str:
    """Which of the wanted settings are not those that were found, in words; empty where all are.

    >>> differing({"seed": 1, "model": "a"}, {"seed": 1, "model": "b"})
    'differs in model'
    >>> differing({"seed": 1}, {"seed": 2, "model": "b", "data": "c"})
    'differs in data, model and seed'
    >>> differing({"seed": 1, "more": 0}, {"seed": 1})
    ''
    """
    names = sorted(name for name in wanted if not isinstance(found, Mapping) or found.get(name) != wanted[name])
    if not names:
        return ""
    # One name may itself be a plural ("methods"), so names are not the subject of this sentence.
    return f"differs in {' and '.join(filter(None, [', '.join(names[:-1]), names[-1]]))}"
