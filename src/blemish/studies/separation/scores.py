"""Accuracies with and without noise, MSCR, and what many runs say about them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.statistics import MeanEstimate, estimate_mean
from blemish.studies.separation.exact import checked_points
from blemish.studies.separation.noise import Noise, as_unit_floats

_CHUNK_VALUES = 1 << 24


def estimate_record(estimate: MeanEstimate) -> dict[str, Any]:
    """Plain values for JSON."""
    return {
        "mean": estimate.value,
        "half_width": estimate.half_width,
        "deviation": estimate.deviation,
        "runs": estimate.count,
    }


def mscr_of(clean: float, robust: float) -> float:
    """MSCR = (Acc_rob − Acc_clean) / Acc_clean: the share of accuracy lost to noise that could be avoided.

    >>> round(100 * mscr_of(0.99531, 0.99405), 3)
    -0.127
    """
    if clean <= 0:
        raise InputError(f"clean accuracy {clean}; expected more than 0, as MSCR is relative to it")
    return (robust - clean) / clean


def accuracy(
    predict: Callable[[NDArray[Any]], NDArray[Any]], points: NDArray[Any], labels: NDArray[Any], noise: Noise
) -> float:
    """The share of right predictions over the k noisy points around each point; over the points where ε is 0."""
    step = max(1, _CHUNK_VALUES // max(1, math.prod(points.shape[1:])))
    right = asked = 0
    for copy in range(1 if noise.epsilon == 0 else noise.k):
        for start in range(0, len(points), step):
            part = slice(start, start + step)
            noisy = noise.around(points[part], ids=np.arange(len(points))[part], copy=copy)
            answer = np.asarray(predict(noisy))
            if answer.shape != labels[part].shape:
                raise InputError(
                    f"predictions of shape {answer.shape} for {len(labels[part])} points; expected one each"
                )
            right += int((answer == labels[part]).sum())
            asked += len(answer)
    return right / asked


@dataclass(frozen=True)
class ModelScore:
    """One model's accuracies (shares of 1) and MSCR over runs of noise."""

    model: str
    epsilon: float
    clean: float
    robust: MeanEstimate
    mscr: MeanEstimate

    def record(self) -> dict[str, Any]:
        """Plain values for JSON."""
        estimates = {"robust": estimate_record(self.robust), "mscr": estimate_record(self.mscr)}
        return {"model": self.model, "epsilon": self.epsilon, "clean": self.clean, **estimates}


def mscr(
    models: Mapping[str, Callable[[NDArray[Any]], NDArray[Any]]],
    points: ArrayLike,
    labels: ArrayLike,
    *,
    epsilon: float,
    runs: int = 20,
    k: int = 1,
    norm: Any = "linf",
    seed: int = 0,
    clip: bool = False,
    progress: ProgressReport = tell_nobody,
) -> list[ModelScore]:
    """MSCR of trained models: ``epsilon`` is ε_min of the whole data set, or any other radius.

    A model is a function from points (floats; uint8 images arrive in [0, 1]) to labels. All models see the same noise.
    The runs differ in noise only; for the spread over training too, use ``experiment``.
    """
    if not models:
        raise InputError("no models; expected at least one name with a function that predicts labels")
    if not epsilon > 0:
        raise InputError(f"ε = {epsilon}; expected a positive radius, such as ε_min of the data")
    if runs < 1:
        raise InputError(f"runs={runs}; expected at least 1")
    data, _, _ = checked_points(points, labels)
    values, targets = as_unit_floats(data), np.asarray(labels)
    noises = [Noise(float(epsilon), norm=norm, k=k, seed=seed, run=run, clip=clip) for run in range(runs)]
    scores = []
    for name, predict in models.items():
        clean = accuracy(predict, values, targets, noises[0].of(0.0))
        robust = []
        for number, noise in enumerate(noises):
            progress(number, runs, name)
            robust.append(accuracy(predict, values, targets, noise))
        relative = [mscr_of(clean, value) for value in robust]
        scores.append(ModelScore(name, float(epsilon), clean, estimate_mean(robust), estimate_mean(relative)))
    return scores


@dataclass(frozen=True)
class Matrix:
    """Accuracies of an experiment, shares of 1, of shape (runs, ε_test, ε_train)."""

    protocol: Any
    accuracies: NDArray[np.float64]

    def _row(self, epsilon: float) -> int:
        rows: tuple[float, ...] = self.protocol.eps_test
        if epsilon not in rows:
            raise InputError(f"ε_test = {epsilon} was not measured; expected one of {', '.join(map(str, rows))}")
        return rows.index(epsilon)

    def accuracy(self, eps_test: float) -> list[MeanEstimate]:
        """Accuracy per ε_train at one ε_test."""
        return [estimate_mean(column) for column in self.accuracies[:, self._row(eps_test)].T]

    def mscr(self, epsilon: float | None = None) -> list[MeanEstimate]:
        """MSCR per ε_train, the mean over runs of each run's value, at ε_min or another measured radius."""
        at = self.protocol.epsilon_min if epsilon is None else epsilon
        clean, robust = self.accuracies[:, self._row(0.0)], self.accuracies[:, self._row(at)]
        values = [
            [mscr_of(c, r) for c, r in zip(*columns, strict=True)] for columns in zip(clean.T, robust.T, strict=True)
        ]
        return [estimate_mean(column) for column in values]

    def record(self) -> dict[str, Any]:
        """Everything as plain values for JSON."""
        at = {str(eps): [estimate_record(e) for e in self.accuracy(eps)] for eps in self.protocol.eps_test}
        return {
            "protocol": dataclasses.asdict(self.protocol),
            "runs": len(self.accuracies),
            "accuracy": at,
            "mscr": [estimate_record(e) for e in self.mscr()],
        }
