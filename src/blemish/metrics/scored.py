"""The scores of a run: numbers with intervals, what could not be computed and why, and what they rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from blemish.benchmarks.condition import read_condition
from blemish.core.errors import InputError
from blemish.core.frames import Columns, Curve, Plotted
from blemish.core.statistics import Estimate
from blemish.evaluation.chance import Chance
from blemish.evaluation.runs import curves_of
from blemish.metrics.beside import Beside
from blemish.metrics.calibration import Reliability
from blemish.metrics.maker import Missing
from blemish.metrics.quantities import QUANTITIES
from blemish.metrics.titles import TITLES, Part, Scope, whole_title


@dataclass(frozen=True)
class Score:
    """A number, in the units it is shown in.

    ``of`` names the family, corruption, condition, sequence or set, as ``scope`` says; it is empty for the whole
    benchmark. ``trained_on`` marks numbers in which the model met a corruption that it was trained on.
    """

    name: str
    scope: Scope
    of: str
    estimate: Estimate
    trained_on: bool = False

    @property
    def unit(self) -> str:
        """The unit: percent as a rule."""
        return TITLES[self.name].unit


@dataclass(frozen=True, repr=False)
class Scores(Plotted):
    """The scores of a run, what could not be computed and why, and remarks on what the numbers rest on.

    ``part`` is set where only a part of a benchmark was measured: its means have other names then. ``chance`` compares
    the clean accuracy with chance, where clean images were measured; ``beside`` holds published accuracies, where the
    benchmark names some.
    """

    model: str
    benchmark: str
    metric: str
    rows: tuple[Score, ...]
    missing: tuple[Missing, ...]
    reliability: Mapping[str, Reliability]
    baseline: str | None
    remarks: tuple[str, ...]
    images: int
    level: float
    replicates: int
    seed: int
    part: Part | None = None
    chance: Chance | None = None
    beside: Beside | None = None

    @property
    def near_chance(self) -> bool:
        """Whether the model is not better than chance on clean images, so that its numbers mean nothing."""
        return self.chance is not None and self.chance.near

    @property
    def quantity(self) -> str:
        """The number that conditions are told by: the error, unless the task has another one."""
        names = {row.name for row in self.rows if row.scope == "condition"}
        return next((quantity.name for quantity in QUANTITIES if quantity.name in names), "error")

    @property
    def headline(self) -> Score | None:
        """The benchmark's own metric, where it could be computed; `find` says why not."""
        rows = self.select(scope="benchmark", name=self.metric)
        return rows[0] if rows else None

    def select(self, *, scope: Scope | None = None, name: str | None = None) -> tuple[Score, ...]:
        """The rows of a scope, of a metric, or both."""
        return tuple(row for row in self.rows if scope in (None, row.scope) and name in (None, row.name))

    def find(self, name: str, of: str = "") -> Score:
        """One score; an error that says why where there is none."""
        for row in self.rows:
            if (row.name, row.of) == (name, of):
                return row
        metric = f"{name} of {of}" if of else name
        for item in self.missing:
            if name in item.names and item.of == of:
                raise InputError(f"{self.model}: {metric} cannot be computed: {item.why}")
        raise InputError(f"{self.model}: {metric} does not apply to {self.benchmark}")

    def caption(self) -> str:
        """The model, the benchmark, and the headline with its interval."""
        whole = f"{self.model} on {self.benchmark}, {self.images} images"
        if self.headline is None:
            return whole
        title = whole_title(self.metric, self.part)
        return f"{whole}: {title} {self.headline.estimate} {self.headline.unit}".strip()

    def table(self) -> Columns:
        """A row for every number: what it is, what it is of, its value and the ends of its interval."""
        return {
            **{key: [getattr(row, key) for row in self.rows] for key in ("name", "scope", "of")},
            **{key: [getattr(row.estimate, key) for row in self.rows] for key in ("value", "low", "high")},
            **{key: [getattr(row, key) for row in self.rows] for key in ("unit", "trained_on")},
        }

    def errors(self) -> Columns:
        """The error of every condition, in percent, with its interval; of other tasks the number that they have."""
        rows = self.select(scope="condition", name=self.quantity)
        conditions = [read_condition(row.of) for row in rows]
        return {
            "condition": [row.of for row in rows],
            "corruption": [condition.group for condition in conditions],
            "severity": [condition.severity for condition in conditions],
            self.quantity: [row.estimate.value for row in rows],
            "low": [row.estimate.low for row in rows],
            "high": [row.estimate.high for row in rows],
        }

    def curves(self) -> dict[str, Curve]:
        """Errors, or what a task has in their place, over severity, by corruption."""
        return curves_of(self.errors(), quantity=self.quantity)

    def axis(self) -> str:
        """What the curves show."""
        title = TITLES[self.quantity]
        return f"{title.title} [{title.unit}]" if title.unit else title.title

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain lists, dictionaries, texts and numbers."""
        rows = [
            {"name": r.name, "scope": r.scope, "of": r.of, **asdict(r.estimate)}
            | {"unit": r.unit, "trained_on": r.trained_on}
            for r in self.rows
        ]
        whole = [row for row in rows if (row["scope"], row["name"]) == ("benchmark", self.metric)]
        headline = {**whole[0], "title": whole_title(self.metric, self.part)} if whole else None
        bins = {
            name: {k: v.tolist() for k, v in vars(reliability).items()}
            for name, reliability in self.reliability.items()
        }
        plain = ("model", "benchmark", "metric", "baseline", "images", "level", "replicates", "seed")
        return {
            **{name: getattr(self, name) for name in plain},
            "headline": headline,
            "part": None if self.part is None else asdict(self.part),
            "near_chance": self.near_chance,
            "chance": None if self.chance is None else asdict(self.chance),
            "beside": None if self.beside is None else self.beside.as_dict(),
            "rows": rows,
            "missing": [asdict(item) | {"names": list(item.names)} for item in self.missing],
            "remarks": list(self.remarks),
            "reliability": bins,
        }
