"""Corruption error and mCE as metrics of torchmetrics, for loops that one writes oneself.

Rates, as in torchmetrics: 1 is the error of the baseline. `blemish.evaluate` and `blemish.score` keep records and give
intervals; these count errors and keep nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from blemish.benchmarks.condition import CLEAN, Condition, parse_condition
from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.core.printable import first_few
from blemish.corruptions.catalog import hint
from blemish.evaluation.arguments import AskedBenchmark, as_benchmark
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import Baseline, baseline_from_run, published_baseline, unfit_for
from blemish.metrics.formulas import Array, corruption_error, mean_corruption_error

_Metric: Any = optional_import("torchmetrics").Metric
_SHOWN = 5


class _Errors(_Metric):
    """Images and errors by condition, summed over processes."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False

    wrong: Tensor
    images: Tensor

    def __init__(self, conditions: Sequence[Condition], baseline: Baseline | Run | str, **settings: Any) -> None:
        super().__init__(**settings)
        self.conditions = tuple(conditions)
        self.baseline = _baseline(baseline)
        self._base = {group: self.baseline.errors_of(members) for group, members in self._groups().items()}
        for state in ("wrong", "images"):
            self.add_state(state, torch.zeros(len(self.conditions), dtype=torch.int64), dist_reduce_fx="sum")

    def _count(self, row: int, preds: Tensor, target: Tensor) -> None:
        """Count a batch: class numbers, or a score for each class, and labels."""
        classes = preds.argmax(1) if preds.ndim == 2 else preds
        if classes.ndim != 1 or classes.shape != target.shape or classes.is_floating_point():
            raise InputError(
                f"predictions of shape {tuple(preds.shape)} and labels of shape {tuple(target.shape)}; expected scores "
                "(images, classes) or class numbers (images,), and labels (images,)"
            )
        self.wrong[row] += (classes != target).sum()
        self.images[row] += len(target)

    def _groups(self) -> dict[str, list[Condition]]:
        groups: dict[str, list[Condition]] = {}
        for condition in self.conditions:
            groups.setdefault(condition.group, []).append(condition)
        return groups

    def _errors(self) -> dict[str, Array]:
        """The errors by corruption, all conditions of which have to be there."""
        images, wrong = self.images.cpu().numpy(), self.wrong.cpu().numpy()
        if missing := [str(condition) for condition, count in zip(self.conditions, images, strict=True) if not count]:
            raise InputError(
                f"no images under {first_few(missing, _SHOWN)}; expected an update under each of the "
                f"{len(images)} conditions before compute"
            )
        errors = dict(zip(self.conditions, wrong / images, strict=True))
        return {
            group: np.array([errors[condition] for condition in members]) for group, members in self._groups().items()
        }

    def _result(self, value: Array) -> Tensor:
        return torch.tensor(float(value), dtype=torch.float32, device=self.images.device)


class CorruptionError(_Errors):
    """CE of one corruption: the sum of its errors over the severities, divided by the baseline's.

    ``baseline`` is the name of a published one, a run of blemish, or a `blemish.metrics.Baseline`.
    """

    def __init__(
        self,
        name: str,
        *,
        severities: Sequence[float] = (1, 2, 3, 4, 5),
        baseline: Baseline | Run | str = "alexnet",
        **settings: Any,
    ) -> None:
        """``settings`` are torchmetrics' own."""
        if not severities:
            raise InputError("no severities; expected at least one")
        super().__init__([parse_condition(f"{name}@{severity:g}") for severity in severities], baseline, **settings)

    def update(self, preds: Tensor, target: Tensor, severity: float) -> None:
        """Count a batch of images at one of the severities."""
        known = [condition.severity for condition in self.conditions]
        if severity not in known:
            raise InputError(f"severity {severity!r}; expected one of {', '.join(f'{item:g}' for item in known)}")
        self._count(known.index(severity), preds, target)

    def compute(self) -> Tensor:
        """The corruption error, as a ratio."""
        ((group, errors),) = self._errors().items()
        return self._result(corruption_error(errors, self._base[group]))


class MeanCorruptionError(_Errors):
    """mCE: the mean CE of all corruptions of a benchmark, each with all its severities.

    ``baseline`` is the name of a published one, a run of blemish, or a `blemish.metrics.Baseline`; by default the one
    that the benchmark names. The published ones are of images of 224 pixels.
    """

    def __init__(
        self,
        benchmark: AskedBenchmark = "imagenet-c",
        *,
        baseline: Baseline | Run | str | None = None,
        **settings: Any,
    ) -> None:
        """``settings`` are torchmetrics' own."""
        chosen = as_benchmark(benchmark)
        base = chosen.baseline if baseline is None else baseline
        if base is None:
            raise InputError(f"benchmark {chosen.name} names no baseline; expected one to divide by (baseline=…)")
        super().__init__([condition for condition in chosen.conditions if condition != CLEAN], base, **settings)
        if why := unfit_for(self.baseline, chosen.protocol.preset):
            raise InputError(f"{why}; expected a run of one's own (baseline=…)")
        self._rows = {str(condition): row for row, condition in enumerate(self.conditions)}

    def update(self, preds: Tensor, target: Tensor, condition: str) -> None:
        """Count a batch of images under a condition such as "fog@3"."""
        text = str(condition)
        if text not in self._rows:
            raise InputError(f"condition {text!r} is none of the benchmark's; {hint(text, [*self._rows])}")
        self._count(self._rows[text], preds, target)

    def compute(self) -> Tensor:
        """The mean corruption error, as a ratio."""
        return self._result(mean_corruption_error(self._errors(), self._base))

    def corruption_errors(self) -> dict[str, float]:
        """The corruption errors that it is the mean of, by corruption, of what this process has counted."""
        return {group: float(corruption_error(errors, self._base[group])) for group, errors in self._errors().items()}


def _baseline(baseline: Baseline | Run | str) -> Baseline:
    if isinstance(baseline, Run):
        baseline = baseline_from_run(baseline)
    divisor = published_baseline(baseline) if isinstance(baseline, str) else baseline
    divisor.require(balanced=False)
    return divisor
