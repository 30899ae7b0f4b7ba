"""Which metrics apply to the conditions of a run, each as a function of means over images; and why others do not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError, about
from blemish.metrics.baselines import Baseline
from blemish.metrics.calibration import error_of_gaps
from blemish.metrics.formulas import (
    Array,
    balanced_accuracy,
    corruption_error,
    relative_corruption_error,
    relative_to,
    residual_robustness,
    robustness_score,
)
from blemish.metrics.table import Key, Kind, Means
from blemish.metrics.titles import MEANS, Scope, partial_name

Function = Callable[[Means], Array]

NOT_KNOWN = "not known of "
"""How the reason begins why a mean is missing; the parts without which there is none follow."""

_PER_CONDITION = ("error", "accuracy", "confidence", "ece")
_PER_CORRUPTION = ("error", "accuracy", "ce", "relative_ce", "robustness", "residual", "confidence", "ece")
_BALANCED = ("balanced_error", "be", "relative_be")
_PER_SEQUENCE = ("flips", "fr", "ut5d", "t5d", "zipf")


@dataclass(frozen=True)
class Metric:
    """A metric of something: the whole benchmark (``of`` is empty), a family, a corruption, a condition, …"""

    name: str
    scope: Scope
    of: str
    conditions: tuple[Condition, ...]
    function: Function


@dataclass(frozen=True)
class Missing:
    """Metrics that could not be computed, of what (empty: the whole benchmark), and why."""

    names: tuple[str, ...]
    of: str
    why: str


@dataclass(frozen=True)
class Plan:
    """Metrics that can be computed, in the order they are shown, and those that cannot."""

    metrics: tuple[Metric, ...]
    missing: tuple[Missing, ...]


def make_plan(
    conditions: Sequence[Condition],
    measured: Iterable[Key],
    baseline: Baseline | None,
    *,
    family: Callable[[Condition], str],
    partial: bool = False,
) -> Plan:
    """The metrics of a benchmark's conditions, given the columns that were measured.

    Where the conditions are only a ``partial`` benchmark, their means are not called what the benchmark's are.
    """
    maker = _Maker(measured, baseline, partial)
    per_condition = (*_PER_CONDITION, *(_BALANCED[:1] if maker.is_balanced else ()))
    plain = [c for c in conditions if c.other is None and not c.is_sequence]
    for condition in plain:
        maker.add_each(per_condition, "condition", str(condition), [condition])
    _add_corruptions(maker, [c for c in plain if c != CLEAN], family)
    _add_sequences(maker, [c for c in conditions if c.is_sequence])
    _add_natural(maker, [c for c in conditions if c.other is not None])
    return Plan(tuple(maker.metrics), merged(item for _, item in maker.missing))


def merged(missing: Iterable[Missing]) -> tuple[Missing, ...]:
    """Metrics that are missing for the same reason, in one entry."""
    names: dict[tuple[str, str], list[str]] = {}
    for item in missing:
        names.setdefault((item.of, item.why), []).extend(item.names)
    return tuple(Missing(tuple(dict.fromkeys(group)), of, why) for (of, why), group in names.items())


class _Maker:
    """Collects metrics. Everything a metric needs is looked up when it is added, so errors come before any number."""

    def __init__(self, measured: Iterable[Key], baseline: Baseline | None, is_partial: bool) -> None:
        self.measured = set(measured)
        self.is_partial = is_partial
        self.is_balanced = any(kind == "recalls" for kind, _ in self.measured)
        self.baseline = baseline
        self.metrics: list[Metric] = []
        self.missing: list[tuple[Scope, Missing]] = []

    def base(self) -> Baseline:
        if self.baseline is None:
            raise InputError("no baseline was given (--baseline, or baseline=)")
        if self.baseline.unfit is not None:
            raise InputError(self.baseline.unfit)
        return self.baseline

    def column(self, kind: Kind, condition: Condition) -> Function:
        key: Key = (kind, str(condition))
        if key not in self.measured:
            raise InputError(f"no {'Zipf distances' if kind == 'zipf' else 'records'} of {condition}")
        if kind == "recalls":
            return lambda means: balanced_accuracy(means[key])
        return lambda means: means[key]

    def columns(self, kind: Kind, conditions: Sequence[Condition]) -> Function:
        """Several columns along a last axis."""
        missing = [str(c) for c in conditions if (kind, str(c)) not in self.measured]
        if missing:
            raise InputError(f"no records of {', '.join(missing)}")
        parts = [self.column(kind, condition) for condition in conditions]
        return lambda means: np.stack([part(means) for part in parts], axis=-1)

    def add(
        self, name: str, scope: Scope, of: str, conditions: Sequence[Condition], make: Callable[[], Function]
    ) -> Metric | None:
        """A metric, or the reason why there is none."""
        try:
            metric = Metric(name, scope, of, tuple(conditions), make())
        except InputError as error:
            self.missing.append((scope, Missing((name,), of, str(error))))
            return None
        self.metrics.append(metric)
        return metric

    def add_each(self, names: Sequence[str], scope: Scope, of: str, conditions: Sequence[Condition]) -> None:
        """Metrics of a single condition."""
        for name in names:
            self.add(name, scope, of, conditions, partial(_single, self, name, conditions[0]))

    def add_mean(self, name: str, scope: Scope, of: str, parts: dict[str, Metric | None]) -> None:
        """The mean of metrics; one that is missing makes the mean missing."""
        conditions = dict.fromkeys(c for metric in parts.values() if metric is not None for c in metric.conditions)
        known = [metric.function for metric in parts.values() if metric is not None]
        lost = [part for part, metric in parts.items() if metric is None]

        def make() -> Function:
            if lost:
                raise InputError(NOT_KNOWN + ", ".join(lost))
            return _mean(known)

        if scope == "benchmark" and not known:
            self._lost_altogether(name, parts)
        else:
            self.add(self._whole(name) if scope == "benchmark" else name, scope, of, tuple(conditions), make)

    def _whole(self, name: str) -> str:
        """What the mean over all conditions is called."""
        whole = MEANS.get(name, name)
        return partial_name(whole) if self.is_partial else whole

    def _lost_altogether(self, name: str, parts: Collection[str]) -> None:
        """Where nothing of a benchmark is known, one reason stands for all."""
        own = [(s, m) for s, m in self.missing if m.names == (name,) and (s == "family" or m.of in parts)]
        reasons = list(dict.fromkeys(item.why for scope, item in own if scope != "family"))
        rest = f" (and likewise for {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        merged_here = set(own)
        self.missing = [item for item in self.missing if item not in merged_here]
        self.missing.append(("benchmark", Missing((self._whole(name),), "", f"{reasons[0]}{rest}")))


def _mean(functions: Sequence[Function]) -> Function:
    return lambda means: np.asarray(np.mean(np.stack([function(means) for function in functions]), axis=0))


def _single(maker: _Maker, name: str, condition: Condition) -> Function:
    if name == "error":
        correct = maker.column("correct", condition)
        return lambda means: 1 - correct(means)
    if name == "balanced_error":
        recall = maker.column("recalls", condition)
        return lambda means: 1 - recall(means)
    if name == "ece":
        gaps = maker.column("gaps", condition)
        return lambda means: error_of_gaps(gaps(means))
    return maker.column("correct" if name == "accuracy" else "confidence", condition)


def _add_corruptions(maker: _Maker, conditions: Sequence[Condition], family_of: Callable[[Condition], str]) -> None:
    groups: dict[str, list[Condition]] = {}
    for condition in conditions:
        groups.setdefault(condition.group, []).append(condition)
    families: dict[str, list[str]] = {}
    for group, members in groups.items():
        families.setdefault(family_of(members[0]), []).append(group)
    plain = [name for name in _PER_CORRUPTION if not (maker.is_balanced and name in ("ce", "relative_ce"))]
    for name in [*plain, *(_BALANCED if maker.is_balanced else ())] if groups else ():
        metrics = {
            group: maker.add(name, "corruption", group, members, partial(_over_severities, maker, name, members))
            for group, members in groups.items()
        }
        for family, names in families.items():
            maker.add_mean(name, "family", family, {group: metrics[group] for group in names})
        maker.add_mean(name, "benchmark", "", metrics)


def _over_severities(maker: _Maker, name: str, group: Sequence[Condition]) -> Function:
    """A metric of one corruption: all its severities together."""
    if name in ("ce", "relative_ce", "be", "relative_be"):
        return _against_baseline(maker, name, group)
    correct = maker.columns("correct", group)
    if name in (*_PER_CONDITION, "balanced_error"):
        return _mean([_single(maker, name, condition) for condition in group])
    clean = maker.column("correct", CLEAN)
    formula = robustness_score if name == "robustness" else residual_robustness
    return lambda means: formula(correct(means).mean(-1), clean(means))


def _against_baseline(maker: _Maker, name: str, group: Sequence[Condition]) -> Function:
    baseline = maker.base()
    base = baseline.errors_of(group)
    kind: Kind = "recalls" if name in _BALANCED else "correct"
    baseline.require(balanced=kind == "recalls")
    correct = maker.columns(kind, group)
    with about(group[0].group):
        if name in ("ce", "be"):
            corruption_error(np.zeros(len(group)), base)  # a baseline that cannot be divided by is refused here
            return lambda means: corruption_error(1 - correct(means), base)
        if baseline.near_chance:
            raise InputError(f"baseline {baseline.name} is near chance, so that its errors can hardly rise")
        clean, start = maker.column(kind, CLEAN), baseline.clean_error()
        relative_corruption_error(np.zeros(len(group)), 0.0, base, baseline_clean=start)
    return lambda means: relative_corruption_error(1 - correct(means), 1 - clean(means), base, baseline_clean=start)


def _add_sequences(maker: _Maker, conditions: Sequence[Condition]) -> None:
    for name in _PER_SEQUENCE if conditions else ():
        metrics = {
            str(condition): maker.add(
                name, "sequence", str(condition), [condition], partial(_along, maker, name, condition)
            )
            for condition in conditions
        }
        maker.add_mean(name, "benchmark", "", metrics)


def _along(maker: _Maker, name: str, condition: Condition) -> Function:
    """A metric of one sequence."""
    if name == "zipf":
        return maker.column("zipf", condition)
    kind: Kind = "flip" if name in ("flips", "fr") else "top5"
    if name in ("flips", "ut5d"):
        return maker.column(kind, condition)
    base = maker.base().stability_of(condition, kind=kind)
    column = maker.column(kind, condition)
    relative_to(0.0, base, what=f"value for {condition}")
    return lambda means: relative_to(column(means), base)


def _add_natural(maker: _Maker, conditions: Sequence[Condition]) -> None:
    """Natural sets and, beside each, the clean images of its classes."""
    for condition in conditions:
        maker.add_each(_PER_CONDITION, "natural", str(condition), [condition])
    gaps = {}
    for condition in conditions:
        text = str(condition)
        if text.startswith("natural:"):
            clean = Condition(other=text.replace("natural:", "clean:", 1))
            make = partial(_gap, maker, condition, clean)
            gaps[text] = maker.add("natural_gap", "natural", text, [condition, clean], make)
    if gaps:
        maker.add_mean("natural_gap", "benchmark", "", gaps)


def _gap(maker: _Maker, condition: Condition, clean: Condition) -> Function:
    natural, same_classes = maker.column("correct", condition), maker.column("correct", clean)
    return lambda means: residual_robustness(natural(means), same_classes(means))
