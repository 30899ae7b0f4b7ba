"""What the sections of a report are made of, and which model the others are held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from blemish.core.errors import InputError
from blemish.core.printable import first_few
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.corruptions.catalog import Catalog, catalog
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import Baseline
from blemish.metrics.published import PublishedModel
from blemish.reports.page import Section
from blemish.reports.ranks import RankedSet, ranked_sets
from blemish.reports.reading import Reading
from blemish.reports.wording import Wording, page_wording


@dataclass(frozen=True)
class Material:
    """Runs with their scores, and how they were asked to be shown. ``against`` is the model to compare others with."""

    readings: Sequence[Reading]
    baseline: Baseline | Run | str | None = None
    level: float = 0.95
    replicates: int = 1000
    published: Sequence[PublishedModel] = ()
    against: Reading | None = None
    catalog: Catalog = field(default_factory=lambda: catalog, repr=False)
    report: ProgressReport = tell_nobody

    @cached_property
    def sets(self) -> list[RankedSet]:
        """The runs in sets that were measured alike, each ranked."""
        settings: dict[str, Any] = {"baseline": self.baseline, "level": self.level, "replicates": self.replicates}
        return ranked_sets(self.readings, **settings, report=self.report)

    @property
    def ordered(self) -> list[Reading]:
        """The models, the best of each set first."""
        return [reading for own in self.sets for reading in own.order]

    @property
    def plain(self) -> list[Reading]:
        """The runs that are told by errors, as those of classifiers are."""
        return [reading for reading in self.readings if reading.quantity == "error"]

    @property
    def wording(self) -> Wording:
        """How metrics are called on the page."""
        return page_wording(self.readings)

    @property
    def names(self) -> list[str]:
        """The models' names, in the order of their colours."""
        return [reading.name for reading in self.readings]

    @cached_property
    def partners(self) -> list[Reading]:
        """For each model the one that it is compared with: the chosen one, or the best, as far as they overlap."""
        contents = {id(r): {condition.group for condition in r.run.conditions} - {"clean"} for r in self.readings}
        bests = [best for own in self.sets if (best := own.best) is not None]
        wanted = [*([self.against] if self.against is not None else []), *bests, *self.readings]

        def overlap(one: Reading, other: Reading) -> bool:
            return one is other or bool(contents[id(one)] & contents[id(other)])

        return [next(other for other in wanted if overlap(reading, other)) for reading in self.readings]


def chosen_reading(readings: Sequence[Reading], text: str) -> Reading:
    """The model of a report that is called so, or whose folder it is."""
    named = [r for r in readings if text in (r.label, r.run.name, str(r.run.folder))]
    named = named or [r for r in readings if text.rstrip("/") == r.run.folder.name]
    if len(named) != 1:
        known = first_few([reading.label for reading in readings], 6)
        raise InputError(f"{text!r} names {len(named) or 'none'} of the models; expected one of {known}")
    return named[0]


def section(identity: str, title: str, *, short: str = "", template: str = "", **data: Any) -> Section:
    """A section whose template is called like it, unless another is named."""
    return Section(identity, title, f"reports/templates/{template or identity}.html.j2", data, short)
