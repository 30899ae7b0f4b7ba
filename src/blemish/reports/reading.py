"""The scores of a run as tables and pages look them up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.statistics import check_level
from blemish.corruptions.catalog import catalog
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import Baseline
from blemish.metrics.compare import protocol_differences
from blemish.metrics.scored import Score, Scores
from blemish.metrics.scores import score
from blemish.metrics.titles import MEANS, TITLES, Part, Scope, whole_title

_UNNORMALISED = ("error", "accuracy", "flips")
"""What benchmarks are headed by for which no baseline is published."""

_NEAR_CHANCE = " (near chance)"


@dataclass(frozen=True)
class Reading:
    """A run and its scores, under a label that no other run beside it has; ``number`` counts them from 0."""

    label: str
    run: Run
    scores: Scores
    number: int

    @property
    def name(self) -> str:
        """The label as people read it, with a mark on models that are near chance."""
        return marked(self.label, self.scores.near_chance)

    @cached_property
    def _rows(self) -> Mapping[tuple[str, str, str], Score]:
        return {(row.name, row.scope, row.of): row for row in self.scores.rows}

    def get(self, name: str, scope: Scope, of: str = "") -> Score | None:
        """One score, where there is one."""
        return self._rows.get((name, scope, of))

    @property
    def metric(self) -> str:
        """The name of the benchmark's headline."""
        return self.scores.metric

    @property
    def quantity(self) -> str:
        """The number that conditions are told by: the error, unless the task has another one."""
        return self.scores.quantity

    @property
    def part(self) -> Part | None:
        """Which part of a benchmark was measured, where not all of it."""
        return self.scores.part

    @property
    def title(self) -> str:
        """What the benchmark is called."""
        return self.run.info.benchmark.title or self.run.info.benchmark.name

    @property
    def series(self) -> str:
        """The style class that gives the model its colour on a page."""
        return f"s{self.number % 8}"

    @cached_property
    def seen(self) -> tuple[str, ...]:
        """The corruptions of the benchmark that the model was trained on."""
        training = self.run.info.model.training
        tested = {name for condition in self.run.conditions for name in condition.names()}
        return tuple(name for name in (training.corruptions if training else ()) if tested & catalog.kin(name))

    @cached_property
    def groups(self) -> dict[str, list[Condition]]:
        """Corruptions, each with its conditions."""
        groups: dict[str, list[Condition]] = {}
        for condition in self.run.conditions:
            if condition.steps and not condition.is_sequence:
                groups.setdefault(condition.group, []).append(condition)
        return groups

    @cached_property
    def columns(self) -> list[str]:
        """The severities that some corruption has, as headings; none where each corruption has a single condition."""
        severities = {
            column_of(condition): condition.severity for members in self.groups.values() for condition in members
        }
        if len(severities) < 2 or all(len(members) == 1 for members in self.groups.values()):
            return []
        return sorted(severities, key=lambda text: (severities[text] is None, severities[text] or 0, text))

    def row_title(self, group: str) -> str:
        """A corruption, with its severity where that differs from others' and no heading says it."""
        conditions = [condition for members in self.groups.values() for condition in members]
        if self.columns or len({column_of(condition) for condition in conditions}) < 2:
            return group
        return f"{group} {column_of(self.groups[group][0])}"

    @cached_property
    def by_family(self) -> dict[str, list[str]]:
        """Families, each with its corruptions."""
        families: dict[str, list[str]] = {}
        for group, members in self.groups.items():
            families.setdefault(self.run.family(members[0]), []).append(group)
        return families

    @property
    def sequences(self) -> list[str]:
        """The perturbation sequences."""
        return [str(condition) for condition in self.run.conditions if condition.is_sequence]

    @property
    def natural(self) -> list[str]:
        """The names of natural sets."""
        others = [condition.other for condition in self.run.conditions if condition.other is not None]
        return list(dict.fromkeys(other.partition(":")[2] for other in others))


def column_of(condition: Condition) -> str:
    """The severity of a condition as a heading.

    >>> from blemish.benchmarks.condition import parse_condition
    >>> column_of(parse_condition("fog@3")), column_of(parse_condition("noc:border@1-5"))
    ('3', '1–5')
    """
    steps = [step.level.replace("-", "–") for step in condition.steps]
    return "+".join(steps)


def titles_of(readings: Sequence[Reading]) -> str:
    """What the benchmarks of some runs are called, each once."""
    return " · ".join(dict.fromkeys(reading.title for reading in readings))


def benchmark_notes(readings: Sequence[Reading]) -> list[str]:
    """Where runs are of several benchmarks, which is of which."""
    if len({reading.title for reading in readings}) == 1:
        return []
    return [f"{reading.name}: {reading.title}." for reading in readings]


def title_of(name: str, *, unit: bool = True) -> str:
    """A metric as a heading.

    >>> title_of("mce"), title_of("ece", unit=False)
    ('mCE, %', 'expected calibration error')
    """
    title = TITLES[name]
    return f"{title.title}, {title.unit}" if unit and title.unit else title.title


def marked(label: str, near_chance: bool) -> str:
    """The name of a model; one that is near chance is marked wherever its name stands."""
    return f"{label}{_NEAR_CHANCE}" if near_chance else label


def is_near_chance(name: str) -> bool:
    """Whether a model's name is marked so.

    >>> is_near_chance(marked("net", True)), is_near_chance("net")
    (True, False)
    """
    return name.endswith(_NEAR_CHANCE)


def benchmark_title(name: str, part: Part | None, *, unit: bool = True) -> str:
    """A mean over a benchmark, or over a part of it, as a heading.

    >>> benchmark_title("mean_ce", Part(20, 75, "imagenet-c"))
    'mean CE over 20 of 75 conditions, %'
    """
    text, title = whole_title(name, part), TITLES[name]
    return f"{text}, {title.unit}" if unit and title.unit else text


def labels(runs: Sequence[Run]) -> list[str]:
    """The models' names; where two are equal, with their folders."""
    names = [run.name for run in runs]
    return [f"{run.name} ({run.folder})" if names.count(run.name) > 1 else run.name for run in runs]


def read_all(
    runs: Sequence[Run],
    *,
    baseline: Baseline | Run | str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    report: ProgressReport = tell_nobody,
) -> list[Reading]:
    """The scores of several runs beside each other."""
    check_level(level)
    for run in runs:
        if (metric := run.info.benchmark.metric) not in TITLES:
            raise InputError(f"{run.folder}: its benchmark's metric is {metric!r}; expected one of {', '.join(TITLES)}")
    return [
        Reading(name, run, score(run, baseline=baseline, level=level, replicates=replicates, report=report), number)
        for number, (name, run) in enumerate(zip(labels(runs), runs, strict=True))
    ]


def baseline_note(readings: Sequence[Reading]) -> str | None:
    """Which numbers are relative to a baseline, and to which; or that the headline is relative to none.

    None where neither has to be said.
    """
    shown = {row.name for reading in readings for row in reading.scores.rows}
    names = [name for pair in zip(MEANS.values(), MEANS, strict=True) for name in pair if name in shown]
    if not names:
        plain = dict.fromkeys(whole_title(r.metric, r.part) for r in readings if r.metric in _UNNORMALISED)
        return f"Relative to no baseline: {', '.join(plain)}." if plain else None
    # A mean speaks for its parts.
    named = [TITLES[name].title for name in names if MEANS.get(name) not in names]
    baselines = dict.fromkeys(reading.scores.baseline for reading in readings if reading.scores.baseline is not None)
    return f"Relative to the baseline {', '.join(baselines)}, which has 100 %: {', '.join(named)}."


def firsts(readings: Sequence[Reading]) -> list[Reading]:
    """For each run the first one that has corruptions, sequences or sets in common with it: the one to compare with.

    Runs of different benchmarks have nothing in common that could be compared.
    """
    contents = [{condition.group for condition in reading.run.conditions} - {"clean"} for reading in readings]
    return [readings[next(i for i in range(n + 1) if i == n or own & contents[i])] for n, own in enumerate(contents)]


def differences(readings: Sequence[Reading]) -> list[list[str]]:
    """For each run, the fields in which its protocol differs from that of the first of its kind and change numbers."""
    pairs = zip(firsts(readings), readings, strict=True)
    return [protocol_differences(first.run, reading.run) for first, reading in pairs]
