"""What a run reports: how far it is, and what came of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields


@dataclass(frozen=True)
class Failure:
    """A picture that could not be used, and why."""

    name: str
    reason: str


@dataclass
class Outcome:
    """What a run did: images written, images found finished, broken pictures, and the presets that were used.

    ``again`` is how many of those written were there before, but damaged, or made of a source that has changed.
    ``removed`` counts copies of sources that are gone. ``notes`` are for people.
    """

    written: int = 0
    skipped: int = 0
    failures: list[Failure] = field(default_factory=list)
    presets: Counter[str] = field(default_factory=Counter)
    again: int = 0
    removed: int = 0
    notes: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        """Count what another part of the run did."""
        for entry in fields(self):
            setattr(self, entry.name, getattr(self, entry.name) + getattr(other, entry.name))
