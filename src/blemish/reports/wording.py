"""How metrics are called in headings: on pages with their direction, and relative ones with their baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blemish.metrics.titles import MEANS, TITLES, both_names
from blemish.reports.reading import Reading

_RELATIVE = frozenset((*MEANS, *both_names(MEANS.values())))


@dataclass(frozen=True)
class Wording:
    """What is added to the title of a metric: an arrow that says what is better, and what has 100 %."""

    baseline: str | None = None
    arrows: bool = False

    def __call__(self, name: str, title: str) -> str:
        """The title of a metric.

        >>> Wording("alexnet", arrows=True)("mce", "mCE, %"), Wording("alexnet", arrows=True)("robustness", "R")
        ('mCE (alexnet = 100), % ↓', 'R ↑')
        """
        text = title
        if self.baseline is not None and name in _RELATIVE:
            start, comma, unit = title.partition(",")
            text = f"{start} ({self.baseline} = 100){comma}{unit}"
        if not self.arrows:
            return text
        return f"{text} {'↑' if TITLES[name].higher_is_better else '↓'}"


PLAIN = Wording()
"""Titles as they are: what a table for the terminal or a paper has."""


def page_wording(readings: Sequence[Reading]) -> Wording:
    """The wording of a page about some runs."""
    names = dict.fromkeys(reading.scores.baseline for reading in readings if reading.scores.baseline is not None)
    return Wording(" or ".join(names) or None, arrows=True)


def direction(name: str) -> str:
    """Which numbers of a metric are better.

    >>> direction("mce"), direction("accuracy")
    ('lower is better', 'higher is better')
    """
    return "higher is better" if TITLES[name].higher_is_better else "lower is better"
