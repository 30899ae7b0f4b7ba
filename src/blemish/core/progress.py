"""How long work tells how far it is."""

from __future__ import annotations

from typing import Protocol

READING = "reading images"
"""What is being done while images are decoded."""


class ProgressReport(Protocol):
    """Told how much of some long work is done, of how much (None where nobody knows), and what is being done."""

    def __call__(self, done: int, total: int | None, what: str = "") -> None:
        """Take it in; it may be said often."""


def tell_nobody(done: int, total: int | None, what: str = "") -> None:
    """Ignore what is reported."""
