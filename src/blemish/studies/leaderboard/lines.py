"""What leaderboards show, as data: a line for each model, rankings of lines that may be compared, and boards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from blemish.core.statistics import Estimate
from blemish.studies.leaderboard.entry import Speed

Tier = Literal["recomputable", "per-cell", "claimed"]

TIERS: Mapping[Tier, str] = {
    "recomputable": "Whether each image was right is at hand: numbers, intervals and paired tests come from it.",
    "per-cell": "Errors under each condition were published by others: numbers can be added up again, not checked.",
    "claimed": "One number per model, as its source gives it.",
}
"""The tiers, best first, and what each means. They are never mixed in one rank."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A model in a ranking. Errors are in percent; ``low`` to ``high`` are the ranks that it may have.

    ``letters`` name the groups of models that paired tests cannot tell apart. ``near`` are models that its own interval
    contains. ``on_front`` tells whether no other is better in clean error, in the number that is ranked by and in
    speed; ``effective`` is the effective robustness in points. ``trained_on`` are conditions that its training is
    declared to have had.
    """

    model: str
    value: Estimate
    low: int
    high: int
    letters: str = ""
    clean: float | None = None
    cells: Mapping[str, float] = field(default_factory=dict)
    parameters: int | None = None
    training_data: str = ""
    web_scale: bool | None = None
    speed: Speed | None = None
    effective: float | None = None
    on_front: bool = False
    near: tuple[str, ...] = ()
    trained_on: tuple[str, ...] = ()
    details: Mapping[str, str] = field(default_factory=dict)
    link: str = ""
    seal: str = ""
    identity: str = ""

    @property
    def rank(self) -> str:
        """The range of ranks as text: ``2``, or ``2–4``."""
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"

    @property
    def known(self) -> bool:
        """Whether its number has an interval."""
        return self.value.width > 0


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Models that may be compared with each other: one tier, one protocol. Lines are in order, the best first."""

    identity: str
    title: str
    benchmark: str
    tier: Tier
    metric: str
    unit: str
    higher_is_better: bool
    protocol: Mapping[str, str]
    source: str
    how: str
    lines: tuple[Line, ...]
    can: tuple[str, ...] = ()
    cannot: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    """The conditions, in order, of which the lines have errors."""

    @property
    def direction(self) -> str:
        """For the head of its column."""
        return "higher is better" if self.higher_is_better else "lower is better"

    @property
    def corruptions(self) -> tuple[str, ...]:
        """What the conditions are of, each once."""
        return tuple(dict.fromkeys(group_of(text) for text in self.cells))


@dataclass(frozen=True)
class Board:
    """The rankings of one benchmark, those that can be recomputed first."""

    benchmark: str
    title: str
    rankings: Sequence[Ranking]


def group_of(condition: str) -> str:
    """The corruption of a condition, without its severity.

    >>> group_of("fog@3"), group_of("fog@2+snow@1")
    ('fog', 'fog+snow')
    """
    return "+".join(part.partition("@")[0] for part in condition.split("+"))
