"""Effective robustness of runs: whether the testbed's lines apply to a run, and on which side of them a model lies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from blemish.benchmarks.condition import CLEAN
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.core.statistics import Estimate
from blemish.evaluation.runs import Run
from blemish.metrics.caveats import part_of
from blemish.metrics.formulas import Array
from blemish.metrics.maker import Metric, Missing
from blemish.metrics.table import Key, Means
from blemish.metrics.testbed import Line, effective_robustness, line_models, logit, published_lines

EFFECTIVE = {"effective_robustness": "all", "effective_robustness_standard": "standard"}
"""The metrics, and the line that each is measured from."""

_BENCHMARK = "imagenet-c"
_SIDE = 224
_CLASSES = 1000
_STORAGES = ("jpeg85", "as stored")

Verdict = Literal["above", "below", "cannot be told"]


@cache
def _conditions() -> frozenset[str]:
    return frozenset(str(condition) for condition in load_benchmark(_BENCHMARK).conditions)


def why_no_line(run: Run) -> str | None:
    """Why the testbed's lines say nothing about a run: they are of ImageNet-C at 224 pixels, in full, as published."""
    protocol, data = run.info.protocol, run.info.data
    if (part := part_of(run)) is not None:
        return f"only {part.conditions} of the {part.whole} conditions of {part.benchmark} were measured"
    if {str(condition) for condition in run.conditions} != _conditions():
        return f"{run.info.benchmark.name} has other conditions than ImageNet-C"
    if protocol.preset not in ("imagenet", None) or protocol.crop != _SIDE:
        made = f"preset {protocol.preset or 'by size'}, crop {protocol.crop or 'none'}"
        return f"the images are not those of ImageNet-C ({made}; expected imagenet and {_SIDE})"
    if protocol.storage not in _STORAGES:
        return "raw pixels, where ImageNet-C was stored as JPEG of quality 85 (--storage jpeg85)"
    if protocol.frost not in (None, "reference"):
        return f"frost with {protocol.frost} photographs, not with those of ImageNet-C"
    for count, what in ((data.classes, "classes"), (run.info.model.outputs, "outputs of the model")):
        if count not in (None, _CLASSES):
            return f"{count} {what}, where ImageNet has {_CLASSES}"
    return None


def effective_metrics(run: Run, measured: set[Key], clean: float | None) -> tuple[list[Metric], list[Missing]]:
    """The metrics that a run has, given the columns that were measured and its clean accuracy; and why not others.

    Of runs that have nothing to do with ImageNet-C, nothing is said.
    """
    whole = run.info.benchmark.part_of
    name = run.info.benchmark.name if whole is None else whole.name
    if (why := why_no_line(run)) is not None:
        return [], [Missing(tuple(EFFECTIVE), "", why)] if name == _BENCHMARK else []
    metrics, missing = [], []
    for metric, line_name in EFFECTIVE.items():
        line = published_lines()[line_name]
        try:
            metrics.append(_metric(run, metric, line, measured, clean))
        except InputError as error:
            missing.append(Missing((metric,), "", str(error)))
    return metrics, missing


def _metric(run: Run, name: str, line: Line, measured: set[Key], clean: float | None) -> Metric:
    corrupted: list[Key] = [("correct", str(c)) for c in run.conditions if c != CLEAN]
    start: Key = ("correct", str(CLEAN))
    if lost := [text for kind, text in (start, *corrupted) if (kind, text) not in measured]:
        raise InputError(f"no records of {', '.join(lost[:3])}{' and others' if len(lost) > 3 else ''}")
    line.check(clean if clean is not None else math.nan)

    def function(means: Means) -> Array:
        accuracy = np.mean(np.stack([means[key] for key in corrupted]), axis=0)
        return effective_robustness(accuracy, means[start], line)

    return Metric(name, "benchmark", "", tuple(run.conditions), function)


@dataclass(frozen=True)
class Position:
    """Where a model lies: accuracies and effective robustness in percent and points, the line, and on which side.

    The interval of ``effective`` covers the choice of images alone, that of ``overall`` the line as well.
    ``beyond_scatter`` tells whether it lies further away than the line's own models scatter, and ``higher_than`` how
    many of them lie less far up.
    """

    line: Line
    clean: float
    corrupted: float
    expected: float
    effective: Estimate
    overall: Estimate
    beyond_scatter: bool
    higher_than: int

    @property
    def verdict(self) -> Verdict:
        """Above or below where the whole interval lies there; else it cannot be told."""
        if self.overall.low > 0:
            return "above"
        return "below" if self.overall.high < 0 else "cannot be told"


def position(line: Line, clean: float, corrupted: float, effective: Estimate, *, level: float = 0.95) -> Position:
    """A model's position, from its accuracies as rates and its effective robustness in points with its interval."""
    expected, off = float(line.expected(clean)), line.uncertainty(clean, level=level)
    lower, upper = (100 * abs(float(line.expected(clean, shift=shift)) - expected) for shift in (-off, off))
    # Where the line may be higher, the model may be lower.
    overall = Estimate(
        effective.value,
        effective.value - math.hypot(effective.value - effective.low, upper),
        effective.value + math.hypot(effective.high - effective.value, lower),
    )
    residual = float(logit(corrupted) - logit(expected))
    return Position(
        line=line,
        clean=100 * clean,
        corrupted=100 * corrupted,
        expected=100 * expected,
        effective=effective,
        overall=overall,
        beyond_scatter=abs(residual) > line.band(clean, level=level),
        higher_than=sum(other < residual for other in _residuals(line)),
    )


def _residuals(line: Line) -> Iterator[float]:
    return (model.residual(line) for model in line_models() if line.name == "all" or model.standard)
