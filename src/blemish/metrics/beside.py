"""A run beside published accuracies: people's at each level, and at which level a model falls below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate, percentile_interval, unanimous_interval
from blemish.evaluation.runs import Run
from blemish.metrics.formulas import Array
from blemish.metrics.references import Level, Reference, reference_named, references
from blemish.metrics.table import Key

# Which random stream people's answers are drawn from; images are resampled from streams 0 and 1.
_PURPOSE = 2


@dataclass(frozen=True)
class LevelBeside:
    """One level: the accuracy of people and of the model, in percent; the model's is None where it was not measured."""

    level: Level
    people: Estimate
    model: Estimate | None


@dataclass(frozen=True)
class Fall:
    """At which severity a model falls below people, with its interval.

    0 means that it is below them at the control already, None that it is not, at any published level. ``resamples`` is
    the share of resamples in which it falls below at all, and ``between`` names the levels on both sides.
    """

    severity: float | None
    low: float | None
    high: float | None
    resamples: float
    between: tuple[str, str] | None


@dataclass(frozen=True)
class StimulusBeside:
    """All levels of a stimulus, the weakest first; no fall where fewer than two levels were measured."""

    corruption: str
    levels: tuple[LevelBeside, ...]
    fall: Fall | None


@dataclass(frozen=True)
class Beside:
    """Published accuracies and a run's own.

    ``model``, ``people`` and ``difference`` are means over the ``counted`` levels, first within each stimulus, then
    over stimuli, in percent; None where some of those levels was not measured.
    """

    reference: Reference
    stimuli: tuple[StimulusBeside, ...]
    model: Estimate | None = None
    people: Estimate | None = None
    difference: Estimate | None = None
    counted: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain lists, dictionaries, texts and numbers."""
        entry = asdict(self)
        entry["reference"] = {key: entry["reference"][key] for key in ("name", "title", "source", "rows")}
        return entry


def falls_below(severities: ArrayLike, gaps: ArrayLike) -> NDArray[np.float64]:
    """The first severity at which a gap (…, levels), model less people, falls below 0; infinite where it never does.

    Between two levels gaps are linear. Where the first gap is below 0 already, it is the first severity.

    >>> falls_below([0, 1, 3], [[0.1, 0.1, -0.1], [-0.1, 0.1, 0.1], [0.1, 0.0, 0.2]]).tolist()
    [2.0, 0.0, inf]
    """
    places, values = np.asarray(severities, dtype=np.float64), np.asarray(gaps, dtype=np.float64)
    if places.ndim != 1 or values.shape[-1:] != places.shape or (np.diff(places) <= 0).any() or not len(places):
        raise InputError(f"gaps of shape {values.shape} at {places.tolist()}; expected one for each ascending severity")
    below = values < 0
    first = np.where(below.any(-1), below.argmax(-1), len(places) - 1)
    before = np.maximum(first - 1, 0)
    low, high = (np.take_along_axis(values, index[..., None], -1)[..., 0] for index in (before, first))
    drop = np.where(low > high, low - high, 1)
    share = np.where(first > 0, np.clip(low, 0, None) / drop, 0)
    reached = places[before] + share * (places[first] - places[before])
    return np.asarray(np.where(below.any(-1), reached, np.inf))


def beside(
    run: Run, point: Mapping[Key, Array], replicated: Mapping[Key, Array], *, level: float, seed: int
) -> Beside | None:
    """What stands beside a run, if its benchmark names published accuracies; ``point`` and ``replicated`` are means.

    Intervals are over the images of the run and over people's trials, which are drawn anew from a binomial law.
    """
    name = run.info.benchmark.reference
    if name is None or name not in references():  # a remark says so
        return None
    reference = reference_named(name)
    measured = {condition.group for condition in run.conditions}
    rng = np.random.default_rng([seed, _PURPOSE])
    stimuli = [
        _Stimulus(corruption, levels, point, replicated, rng, level, run.info.data.images)
        for corruption, levels in reference.levels.items()
        if corruption in measured
    ]
    compared = tuple(stimulus.beside() for stimulus in stimuli)
    if not stimuli or not all(stimulus.complete for stimulus in stimuli):
        return Beside(reference, compared)
    pairs = [stimulus.counted() for stimulus in stimuli]
    model, people = ([np.mean([pair[which][part] for pair in pairs], axis=0) for part in (0, 1)] for which in (0, 1))
    return Beside(
        reference,
        compared,
        model=percentile_interval(float(model[0]), model[1], level=level).scaled(100),
        people=percentile_interval(float(people[0]), people[1], level=level).scaled(100),
        difference=percentile_interval(float(model[0] - people[0]), model[1] - people[1], level=level).scaled(100),
        counted=sum(item.counted for stimulus in stimuli for item in stimulus.levels),
    )


class _Stimulus:
    """The accuracies of a stimulus, and those of all resamples."""

    def __init__(
        self,
        corruption: str,
        levels: Sequence[Level],
        point: Mapping[Key, Array],
        replicated: Mapping[Key, Array],
        rng: np.random.Generator,
        level: float,
        images: int,
    ) -> None:
        self.corruption, self.levels, self.level, self.images = corruption, levels, level, images
        self.model: list[tuple[float, Array] | None] = []
        self.people: list[tuple[float, Array]] = []
        for item in levels:
            key: Key = ("correct", item.condition)
            known = key in point
            self.model.append((float(point[key]), replicated[key]) if known else None)
            count = len(replicated[key]) if known else 1
            # Drawn for every level, so that one that is missing does not change the others.
            self.people.append((item.accuracy, rng.binomial(item.trials, item.accuracy, count) / item.trials))

    @property
    def complete(self) -> bool:
        """Whether all levels that count were measured."""
        return all(model is not None for item, model in zip(self.levels, self.model, strict=True) if item.counted)

    def counted(self) -> list[tuple[Array, Array]]:
        """The mean over levels that count, of the model and of people: the value, and those of resamples."""
        rows = [
            (model, people)
            for item, model, people in zip(self.levels, self.model, self.people, strict=True)
            if item.counted and model is not None
        ]
        return [
            (np.asarray(np.mean([row[which][0] for row in rows])), np.mean([row[which][1] for row in rows], axis=0))
            for which in (0, 1)
        ]

    def beside(self) -> StimulusBeside:
        levels = tuple(
            LevelBeside(
                item,
                item.interval(self.level).scaled(100),
                None if model is None else self._accuracy(*model).scaled(100),
            )
            for item, model in zip(self.levels, self.model, strict=True)
        )
        return StimulusBeside(self.corruption, levels, self._fall())

    def _accuracy(self, value: float, drawn: Array) -> Estimate:
        if value in (0, 1):  # resamples of images that all agree agree too
            return unanimous_interval(value, self.images, level=self.level)
        return percentile_interval(value, drawn, level=self.level)

    def _fall(self) -> Fall | None:
        rows = [
            (item, model, people)
            for item, model, people in zip(self.levels, self.model, self.people, strict=True)
            if model is not None
        ]
        if len(rows) < 2:
            return None
        severities = [item.severity for item, _, _ in rows]
        value = float(falls_below(severities, [model[0] - people[0] for _, model, people in rows]))
        drawn = falls_below(severities, np.stack([model[1] - people[1] for _, model, people in rows], axis=-1))
        ends = np.quantile(drawn, [(1 - self.level) / 2, (1 + self.level) / 2], method="inverted_cdf")
        severity, low, high = (None if np.isinf(end) else float(end) for end in (value, *ends))
        between = None
        if severity is not None and severity > severities[0]:
            after = next(i for i, each in enumerate(severities) if each >= severity)
            between = rows[after - 1][0].level, rows[after][0].level
        return Fall(severity, low, high, float(np.isfinite(drawn).mean()), between)
