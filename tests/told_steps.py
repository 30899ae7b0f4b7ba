"""What a run tells of its progress, collected."""

from __future__ import annotations

from typing import NamedTuple

from blemish.core.progress import READING


class Step(NamedTuple):
    """Where a run stood."""

    done: int
    total: int | None
    condition: str


class Steps(list[Step]):
    """Told how far a run is; what it says of reading images is left out."""

    def __call__(self, done: int, total: int | None, what: str = "") -> None:
        if what != READING:
            self.append(Step(done, total, what))
