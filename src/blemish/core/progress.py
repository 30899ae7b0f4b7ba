"""How long work tells how far it is."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["ProgressReport", "tell_nobody"]

ProgressReport = Callable[[int, int, str], None]
"""Told how much of some long work is done, of how much, and what is being done."""


def tell_nobody(done: int, total: int, what: str) -> None:
    """A `ProgressReport` that goes unheard."""
