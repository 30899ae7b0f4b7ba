"""Settings that lie in a folder beside those that are asked for now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blemish.core.settings import differences

__all__ = ["differing"]


def differing(found: Any, wanted: Mapping[str, Any]) -> str:
    """Which of the wanted settings are not those that were found, in words; empty where all are.

    >>> differing({"seed": 1, "more": 0}, {"seed": 2})
    'seed was 1, now 2'
    """
    known = found if isinstance(found, Mapping) else {}
    return "; ".join(differences({name: known.get(name) for name in wanted}, dict(wanted)))
