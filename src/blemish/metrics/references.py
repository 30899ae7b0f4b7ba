"""Published accuracies that a benchmark names: of people at each level that they saw, or of models and people in all.

They stand beside the numbers of a run. Nothing is divided by them; for that there are baselines.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate, wilson_interval
from blemish.corruptions.catalog import hint


@dataclass(frozen=True)
class PublishedAccuracy:
    """A published mean accuracy over the whole benchmark, in percent; ``kind`` is model, human or another word."""

    name: str
    kind: str
    accuracy: float


@dataclass(frozen=True)
class Level:
    """One level of a stimulus that observers saw.

    ``condition`` shows it to a model, at ``severity``; the first level of a stimulus is its control, at severity 0.
    ``kappa`` is Cohen's κ of right and wrong between observers, and ``counted`` tells whether the authors' mean over
    levels has it: not the controls, nor levels at which people are right in less than a fifth.
    """

    level: str
    condition: str
    severity: float
    correct: int
    trials: int
    kappa: float
    counted: bool

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return self.correct / self.trials

    def interval(self, level: float = 0.95) -> Estimate:
        """Wilson's interval over trials; observers saw the same images, so that it is too narrow for other people."""
        return wilson_interval(self.correct, self.trials, level=level)


@dataclass(frozen=True)
class Reference:
    """Published accuracies under a name that benchmarks use; ``levels`` by the corruption that makes the stimulus."""

    name: str
    title: str
    source: str
    rows: tuple[PublishedAccuracy, ...]
    levels: Mapping[str, tuple[Level, ...]]

    def kappa_between_people(self, conditions: Collection[str]) -> float | None:
        """The mean of κ between observers over the levels that count, of these conditions; None where there is none."""
        chosen = [
            item.kappa
            for levels in self.levels.values()
            for item in levels
            if item.counted and item.condition in conditions
        ]
        return sum(chosen) / len(chosen) if chosen else None


def references() -> tuple[str, ...]:
    """The names of the published accuracies that come with the library.

    >>> references()
    ('laion-c', 'human-16')
    """
    return tuple(_all())


def reference_named(name: str) -> Reference:
    """Published accuracies by name.

    >>> reference_named("human-16").levels["human:contrast"][1]
    Level(level='50 %', condition='human:contrast@1', severity=1, correct=529, trials=640, kappa=0.4234, counted=True)
    """
    if name not in _all():
        raise InputError(f"no published accuracies are called {name!r}; {hint(name, list(_all()))}")
    return _all()[name]


@cache
def _all() -> dict[str, Reference]:
    path = resources.files("blemish.metrics") / "references.json"
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: Reference(
            name,
            entry["title"],
            entry["source"],
            tuple(PublishedAccuracy(*row) for row in entry["rows"]),
            {corruption: tuple(Level(*row) for row in rows) for corruption, rows in entry["levels"].items()},
        )
        for name, entry in content.items()
        if name != "about"
    }
