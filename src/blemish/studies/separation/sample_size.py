"""How many noisy points per point, and how many runs: what either buys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from blemish.core.errors import InputError
from blemish.core.statistics import MeanEstimate, estimate_mean
from blemish.ops.balls import Norm
from blemish.studies.separation.exact import checked_points
from blemish.studies.separation.experiment import Protocol, Trainer
from blemish.studies.separation.noise import as_unit_floats
from blemish.studies.separation.scores import Matrix, accuracy


@dataclass(frozen=True)
class KEffect:
    """Robust accuracy with k noisy points per point."""

    k: int
    robust: MeanEstimate
    """Over runs: each with its own split, model and draws."""
    share_of_draws: float
    """The share of a run's variance that comes from the test draws alone; more points per point lower only this."""


def effect_of_k(
    points: ArrayLike,
    labels: ArrayLike,
    train: Trainer,
    *,
    epsilon: float,
    ks: Sequence[int] = (1, 2, 3, 5, 8, 10, 15, 20, 30, 50),
    runs: int = 30,
    repeats: int = 4,
    norm: Norm = "linf",
    seed: int = 0,
    test_share: float = 0.2,
    clip: bool = False,
) -> list[KEffect]:
    """Robust accuracy, trained and tested with k points at ε = ``epsilon``, per k (Figure 4 of the paper).

    Each test is repeated with ``repeats`` sets of draws, so that the variance splits into the part that more points per
    point lower and the part that only more runs do.
    """
    data, codes, _ = checked_points(points, labels)
    if not epsilon > 0:
        raise InputError(f"ε = {epsilon}; expected a positive radius")
    if runs < 2 or repeats < 2 or not ks:
        raise InputError(
            f"runs={runs}, repeats={repeats}, ks={tuple(ks)}; expected 2 runs, 2 repeats and one k, or more"
        )
    values = as_unit_floats(data)
    protocol = Protocol(
        model="",
        norm=norm,
        epsilon_min=epsilon,
        eps_train=(epsilon,),
        eps_test=(epsilon,),
        k=min(ks),
        seed=seed,
        test_share=test_share,
        clip=clip,
        draws="independent",
        data="",
    )
    table = np.empty((len(ks), runs, repeats))
    for row, k in enumerate(ks):
        for run in range(runs):
            trained, tested = protocol.split(run, len(values))
            noise = replace(protocol.noise(run), epsilon=epsilon, k=k)
            predict = train(values[trained], codes[trained], noise.of(epsilon, role="train"))
            for repeat in range(repeats):
                again = noise.of(epsilon, role=f"test {repeat}")
                table[row, run, repeat] = accuracy(predict, values[tested], codes[tested], again)
    return [_effect(k, part) for k, part in zip(ks, table, strict=True)]


def _effect(k: int, table: Any) -> KEffect:
    """One-way analysis of variance: the draws' part is the variance between repeats of one run."""
    of_draws = float(table.var(axis=1, ddof=1).mean())
    whole = float(table[:, 0].var(ddof=1))
    pooled = estimate_mean(table[:, 0])
    return KEffect(k, pooled, of_draws / whole if whole > 0 else 0.0)


def effect_of_runs(matrix: Matrix, *, column: int = 0) -> list[MeanEstimate]:
    """MSCR of one ε_train from the first 5, 10, 20, … runs of an experiment, and from all."""
    total = len(matrix.accuracies)
    counts = [5 * 2**step for step in range(12) if 5 * 2**step < total]
    parts = [replace(matrix, accuracies=matrix.accuracies[:count]) for count in [*counts, total]]
    return [part.mscr()[column] for part in parts]


def runs_for(half_width: float, deviation: float) -> int:
    """How many runs a 95 % interval of ± ``half_width`` takes, from the standard deviation of a single run.

    >>> runs_for(0.01, 0.12)
    554
    """
    if not (half_width > 0 and deviation >= 0):
        raise InputError(f"half_width={half_width}, deviation={deviation}; expected a positive width")
    return max(2, math.ceil((1.96 * deviation / half_width) ** 2))
