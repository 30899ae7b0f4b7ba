"""Which models are better, as far as the records tell: sets of runs that were measured alike, each with its ranking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import Baseline
from blemish.metrics.ranking import Ranking, comparable, rank_runs
from blemish.reports.reading import Reading


@dataclass(frozen=True)
class Row:
    """A model in a ranking: its ranks and groups as text, or why it has none."""

    reading: Reading
    rank: str
    letters: str
    is_best: bool
    may_be_best: bool
    why: str = ""
    alone: bool = False
    """Whether it is told apart from all others."""


@dataclass(frozen=True)
class RankedSet:
    """Runs that were measured alike; without a ``ranking``, ``why`` says what stands in the way."""

    readings: tuple[Reading, ...]
    ranking: Ranking | None
    why: str = ""

    @property
    def rows(self) -> list[Row]:
        """The models in order, the best first, then those without a rank."""
        if self.ranking is None:
            return [Row(reading, "–", "", False, False, self.why) for reading in self.readings]
        ranked = [
            Row(
                *(self.readings[place.index], place.rank, place.letters, number == 0, place.may_be_best),
                alone=place.low == place.high,
            )
            for number, place in enumerate(self.ranking.places)
        ]
        rest = [Row(self.readings[n], "–", "", False, False, why) for n, why in sorted(self.ranking.unranked.items())]
        return [*ranked, *rest]

    @property
    def order(self) -> list[Reading]:
        """The models alone."""
        return [row.reading for row in self.rows]

    @property
    def best(self) -> Reading | None:
        """The model with the best number."""
        return next((row.reading for row in self.rows if row.is_best), None)

    @property
    def like_best(self) -> list[Reading]:
        """The models that cannot be told apart from the best, without it."""
        rows = self.rows
        groups = set(rows[0].letters.split())
        return [row.reading for row in rows[1:] if groups & set(row.letters.split())]


def ranked_sets(
    readings: Sequence[Reading],
    *,
    baseline: Baseline | Run | str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    report: ProgressReport = tell_nobody,
) -> list[RankedSet]:
    """The runs in sets that were measured alike, each ranked by its headline."""
    sets = []
    for places in comparable([reading.run for reading in readings]):
        members = tuple(readings[index] for index in places)
        runs = [reading.run for reading in members]
        try:
            ranking = rank_runs(runs, baseline=baseline, level=level, replicates=replicates, report=report)
        except InputError as error:
            sets.append(RankedSet(members, None, str(error)))
        else:
            sets.append(RankedSet(members, ranking))
    return sets
