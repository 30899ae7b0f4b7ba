"""Which metrics apply to the conditions of a run, each as a function of means over images; and why others do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError, about
from blemish.metrics.baselines import Baseline
from blemish.metrics.calibration import error_of_gaps
from blemish.metrics.formulas import (
    corruption_error,
    relative_corruption_error,
    relative_to,
    residual_robustness,
    robustness_score,
)
from blemish.metrics.maker import Function, Maker, Metric, Missing, mean_of, merged
from blemish.metrics.performance import add_quantities
from blemish.metrics.quantities import quantities_of
from blemish.metrics.table import Key, Kind
from blemish.metrics.titles import Scope

_PER_CONDITION = ("error", "accuracy", "confidence", "ece")
_PER_CORRUPTION = ("error", "accuracy", "ce", "relative_ce", "robustness", "residual", "confidence", "ece")
_BALANCED = ("balanced_error", "be", "relative_be")
_PER_SEQUENCE = ("flips", "fr", "ut5d", "t5d", "zipf")


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
    maker = Maker(measured, baseline, partial)
    if quantities := quantities_of(kind for kind, _ in maker.measured):
        add_quantities(maker, quantities, conditions, family)
        return Plan(tuple(maker.metrics), merged(item for _, item in maker.missing))
    per_condition = (*_PER_CONDITION, *(_BALANCED[:1] if maker.is_balanced else ()))
    plain = [c for c in conditions if c.other is None and not c.is_sequence]
    for condition in plain:
        _add_each(maker, per_condition, "condition", condition)
    _add_corruptions(maker, [c for c in plain if c != CLEAN], family)
    _add_sequences(maker, [c for c in conditions if c.is_sequence])
    _add_natural(maker, [c for c in conditions if c.other is not None])
    return Plan(tuple(maker.metrics), merged(item for _, item in maker.missing))


def _add_each(maker: Maker, names: Sequence[str], scope: Scope, condition: Condition) -> None:
    """Metrics of a single condition."""
    for name in names:
        maker.add(name, scope, str(condition), [condition], partial(_single, maker, name, condition))


def _single(maker: Maker, name: str, condition: Condition) -> Function:
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


def _add_corruptions(maker: Maker, conditions: Sequence[Condition], family_of: Callable[[Condition], str]) -> None:
    plain = [name for name in _PER_CORRUPTION if not (maker.is_balanced and name in ("ce", "relative_ce"))]
    names = [*plain, *(_BALANCED if maker.is_balanced else ())]
    maker.add_by_corruption(names, conditions, family_of, partial(_over_severities, maker))


def _over_severities(maker: Maker, name: str, group: Sequence[Condition]) -> Function:
    """A metric of one corruption: all its severities together."""
    if name in ("ce", "relative_ce", "be", "relative_be"):
        return _against_baseline(maker, name, group)
    correct = maker.columns("correct", group)
    if name in (*_PER_CONDITION, "balanced_error"):
        return mean_of([_single(maker, name, condition) for condition in group])
    clean = maker.column("correct", CLEAN)
    formula = robustness_score if name == "robustness" else residual_robustness
    return lambda means: formula(correct(means).mean(-1), clean(means))


def _against_baseline(maker: Maker, name: str, group: Sequence[Condition]) -> Function:
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


def _add_sequences(maker: Maker, conditions: Sequence[Condition]) -> None:
    for name in _PER_SEQUENCE if conditions else ():
        metrics = {
            str(condition): maker.add(
                name, "sequence", str(condition), [condition], partial(_along, maker, name, condition)
            )
            for condition in conditions
        }
        maker.add_mean(name, "benchmark", "", metrics)


def _along(maker: Maker, name: str, condition: Condition) -> Function:
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


def _add_natural(maker: Maker, conditions: Sequence[Condition]) -> None:
    """Natural sets and, beside each, the clean images of its classes."""
    for condition in conditions:
        _add_each(maker, _PER_CONDITION, "natural", condition)
    gaps = {}
    for condition in conditions:
        text = str(condition)
        if text.startswith("natural:"):
            clean = Condition(other=text.replace("natural:", "clean:", 1))
            make = partial(_gap, maker, condition, clean)
            gaps[text] = maker.add("natural_gap", "natural", text, [condition, clean], make)
    if gaps:
        maker.add_mean("natural_gap", "benchmark", "", gaps)


def _gap(maker: Maker, condition: Condition, clean: Condition) -> Function:
    natural, same_classes = maker.column("correct", condition), maker.column("correct", clean)
    return lambda means: residual_robustness(natural(means), same_classes(means))
