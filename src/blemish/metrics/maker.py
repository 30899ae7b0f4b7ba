"""What collects the metrics of a run, each a function of means over images, and why others are missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.metrics.baselines import Baseline
from blemish.metrics.formulas import Array, balanced_accuracy
from blemish.metrics.table import Key, Kind, Means
from blemish.metrics.titles import MEANS, Scope, partial_name

Function = Callable[[Means], Array]

NOT_KNOWN = "not known of "
"""How the reason begins why a mean is missing; the parts without which there is none follow."""


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


def merged(missing: Iterable[Missing]) -> tuple[Missing, ...]:
    """Metrics that are missing for the same reason, in one entry."""
    names: dict[tuple[str, str], list[str]] = {}
    for item in missing:
        names.setdefault((item.of, item.why), []).extend(item.names)
    return tuple(Missing(tuple(dict.fromkeys(group)), of, why) for (of, why), group in names.items())


class Maker:
    """Collects metrics. Everything a metric needs is looked up when it is added, so errors come before any number."""

    def __init__(self, measured: Iterable[Key], baseline: Baseline | None, is_partial: bool) -> None:
        self.measured = set(measured)
        self.is_partial = is_partial
        self.is_balanced = any(kind == "recalls" for kind, _ in self.measured)
        self.baseline = baseline
        self.metrics: list[Metric] = []
        self.missing: list[tuple[Scope, Missing]] = []

    def base(self) -> Baseline:
        """What is divided by."""
        if self.baseline is None:
            raise InputError("no baseline was given (--baseline, or baseline=)")
        if self.baseline.unfit is not None:
            raise InputError(self.baseline.unfit)
        return self.baseline

    def column(self, kind: Kind, condition: Condition) -> Function:
        """The mean of a column."""
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

    def add_mean(self, name: str, scope: Scope, of: str, parts: dict[str, Metric | None]) -> None:
        """The mean of metrics; one that is missing makes the mean missing."""
        conditions = dict.fromkeys(c for metric in parts.values() if metric is not None for c in metric.conditions)
        known = [metric.function for metric in parts.values() if metric is not None]
        lost = [part for part, metric in parts.items() if metric is None]

        def make() -> Function:
            if lost:
                raise InputError(NOT_KNOWN + ", ".join(lost))
            return mean_of(known)

        if scope == "benchmark" and not known:
            self._lost_altogether(name, parts)
        else:
            self.add(self._whole(name) if scope == "benchmark" else name, scope, of, tuple(conditions), make)

    def add_by_corruption(
        self,
        names: Sequence[str],
        conditions: Sequence[Condition],
        family_of: Callable[[Condition], str],
        make: Callable[[str, Sequence[Condition]], Function],
    ) -> None:
        """Metrics of each corruption, given its conditions, with their means over families and over all."""
        groups: dict[str, list[Condition]] = {}
        for condition in conditions:
            groups.setdefault(condition.group, []).append(condition)
        families: dict[str, list[str]] = {}
        for group, members in groups.items():
            families.setdefault(family_of(members[0]), []).append(group)
        for name in names if groups else ():
            metrics = {
                group: self.add(name, "corruption", group, members, partial(make, name, members))
                for group, members in groups.items()
            }
            for family, own in families.items():
                self.add_mean(name, "family", family, {group: metrics[group] for group in own})
            self.add_mean(name, "benchmark", "", metrics)

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


def mean_of(functions: Sequence[Function]) -> Function:
    """The mean of several functions of means."""
    return lambda means: np.asarray(np.mean(np.stack([function(means) for function in functions]), axis=0))
