"""Effective robustness (Taori et al. 2020): how far a model lies above the line that other models' accuracies follow.

Accuracies on clean and on corrupted images lie near a line when both are logit-transformed. The lines here are fitted
to the ImageNet testbed's models on ImageNet-C (tools/fit_testbed.py).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blemish.core.errors import InputError
from blemish.core.statistics import student_quantile
from blemish.metrics.formulas import Array

_LEAST_MODELS = 3


@dataclass(frozen=True)
class Line:
    """A line through the logit-transformed accuracies of so many models, clean and corrupted.

    ``spread`` is the standard deviation of the models around it, ``middle`` the mean of their clean accuracies and
    ``scatter`` the sum of squared differences from that, all of logits. Between the clean accuracies ``lowest`` and
    ``highest`` it rests on models; beyond them it is a guess.
    """

    name: str
    models: int
    slope: float
    intercept: float
    spread: float
    middle: float
    scatter: float
    lowest: float
    highest: float

    def as_dict(self) -> dict[str, Any]:
        """As it is written to a file."""
        return asdict(self)

    def expected(self, clean: ArrayLike, *, shift: ArrayLike = 0.0) -> Array:
        """The accuracy on corrupted images at which models of this clean accuracy lie; ``shift`` is in logits."""
        return _logistic(self.intercept + self.slope * logit(clean) + np.asarray(shift))

    def check(self, clean: float) -> None:
        """Refuse a clean accuracy that no model of the line has."""
        if not self.lowest <= clean <= self.highest:
            raise InputError(
                f"a clean accuracy of {100 * clean:.1f} % lies beyond those of the line's {self.models} models "
                f"({100 * self.lowest:.1f} to {100 * self.highest:.1f} %)"
            )

    def uncertainty(self, clean: float, *, level: float = 0.95) -> float:
        """How far the line may be off at a clean accuracy, in logits: there are only so many models."""
        return student_quantile(self.models - 2, level) * self.spread * math.sqrt(self._distance(clean))

    def band(self, clean: float, *, level: float = 0.95) -> float:
        """How far a further model like those of the line may lie from it, in logits."""
        return student_quantile(self.models - 2, level) * self.spread * math.sqrt(1 + self._distance(clean))

    def _distance(self, clean: float) -> float:
        return 1 / self.models + (float(logit(clean)) - self.middle) ** 2 / self.scatter


def logit(accuracy: ArrayLike) -> Array:
    """log(a / (1 − a)); not finite at 0 and 1.

    >>> float(logit(0.5))
    0.0
    """
    values = np.asarray(accuracy, dtype=np.float64)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values) - np.log1p(-values))


def _logistic(values: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-values)))


def effective_robustness(accuracy: ArrayLike, clean: ArrayLike, line: Line) -> Array:
    """ρ = A_c − β(A_clean): the accuracy on corrupted images less the one that the line has (Taori et al. 2020).

    >>> flat = Line("flat", 9, slope=1, intercept=0, spread=0.1, middle=0, scatter=1, lowest=0.1, highest=0.9)
    >>> round(float(effective_robustness(0.6, 0.5, flat)), 12)
    0.1
    """
    return np.asarray(accuracy, dtype=np.float64) - line.expected(clean)


def fit_line(accuracies: ArrayLike, *, name: str) -> Line:
    """The least-squares line of models given as rows of clean and corrupted accuracy."""
    table = np.asarray(accuracies, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != 2 or len(table) < _LEAST_MODELS:
        raise InputError(f"accuracies of shape {table.shape}; expected at least {_LEAST_MODELS} rows of two")
    x, y = logit(table).T
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("an accuracy of 0 or 100 %, whose logit is infinite; expected accuracies between")
    middle = float(x.mean())
    scatter = float(((x - middle) ** 2).sum())
    if not scatter > 0:
        raise InputError("models of one clean accuracy; expected different ones to fit a line to")
    slope = float(((x - middle) * y).sum()) / scatter
    intercept = float(y.mean()) - slope * middle
    spread = math.sqrt(float(((y - intercept - slope * x) ** 2).sum()) / (len(table) - 2))
    ends = float(table[:, 0].min()), float(table[:, 0].max())
    return Line(name, len(table), slope, intercept, spread, middle, scatter, *ends)


@dataclass(frozen=True)
class LineModel:
    """A model of the testbed: accuracies as rates, mCE and relative mCE against the published AlexNet in percent."""

    name: str
    clean: float
    corrupted: float
    mce: float
    relative_mce: float
    standard: bool

    def residual(self, line: Line) -> float:
        """How far it lies from a line, in logits."""
        return float(logit(self.corrupted) - logit(line.expected(self.clean)))


@cache
def _data() -> dict[str, Any]:
    path = resources.files("blemish.metrics") / "testbed.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))


@cache
def published_lines() -> Mapping[str, Line]:
    """The lines by name: ``all``, of all models, and ``standard``, of those that were trained in the standard way."""
    return MappingProxyType({name: Line(**entry) for name, entry in _data()["lines"].items()})


@cache
def line_models() -> tuple[LineModel, ...]:
    """The models that the lines are fitted to."""
    return tuple(
        LineModel(name, clean / 100, corrupted / 100, mce, relative, kind == "standard")
        for name, clean, corrupted, mce, relative, kind in _data()["models"]
    )
