"""Is a classifier better than chance on clean images? If not, nothing that is measured of it means anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from blemish.benchmarks.condition import CLEAN
from blemish.core.errors import InputError
from blemish.core.statistics import wilson_interval
from blemish.evaluation.records import Records, join
from blemish.evaluation.runs import Run

LOOK_AT = (
    "Look at the labels (--mapping), the normalisation (--mean, --std), the channels (--channels) and the order of "
    "the model's classes (--skip-classes 1 drops a background class)"
)

_LEVEL = 0.95
_HALF_WAY = 0.5
_NOTHING = 0.02
_FEWEST = 10


class NearChanceError(InputError):
    """A model that is not better than chance on clean images. Its clean records are kept."""


@dataclass(frozen=True)
class Chance:
    """The accuracy on clean images with its 95 % interval, what chance gives, and whether the two are near."""

    accuracy: float
    low: float
    high: float
    chance: float
    images: int
    near: bool

    def __str__(self) -> str:
        accuracy, low, high, chance = map(_percent, (self.accuracy, self.low, self.high, self.chance))
        if self.near:
            less = "not " if self.low <= self.chance else "hardly "
        else:
            less = "perhaps " if self.low <= self.chance else ""
        return f"clean accuracy {accuracy} % ({low} to {high}, {self.images:,} images), {less}above chance ({chance} %)"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if share >= 0.01 else f"{100 * share:.2g}"


def against_chance(labels: ArrayLike, answers: ArrayLike, *, outputs: int | None = None) -> Chance:
    """Compare a model's first answers with chance.

    Chance is how often the same answers would be right if they were dealt out to the images at random: Σ p(k) q(k)
    over the classes k, with p their share of labels and q of answers. A model that always says the same is at chance,
    however common that class is; one that knows a rare class is not. Where the images are of one class only, chance is
    one in ``outputs``, the number of the model's.

    The accuracy is near chance if its interval (Wilson, 95 %) reaches down to chance, but not up to half way between
    chance and 1: with few images it reaches both, and nothing can be told, nor can it of fewer than ten. It is also
    near chance if the interval ends within a fiftieth of that way: many images can prove an accuracy of 0.4 % to be
    above 0.1 %, and something is wrong all the same.

    >>> against_chance([0, 1] * 50, [0] * 100).near, against_chance([0, 1] * 50, [0, 1] * 50).near
    (True, False)
    """
    truth, given = np.asarray(labels), np.asarray(answers)
    if truth.shape != given.shape or truth.ndim != 1 or not len(truth):
        raise InputError(
            f"labels of shape {truth.shape}, answers of shape {given.shape}; expected as many, one or more"
        )
    classes, counts = np.unique(truth, return_counts=True)
    if len(classes) > 1:
        answered = dict(zip(*(part.tolist() for part in np.unique(given, return_counts=True)), strict=True))
        pairs = sum(n * answered.get(k, 0) for k, n in zip(classes.tolist(), counts.tolist(), strict=True))
        chance = pairs / len(truth) ** 2
    else:
        chance = 1 / outputs if outputs else 0.0
    right = int((truth == given).sum())
    interval = wilson_interval(right, len(truth), level=_LEVEL)
    low, high = interval.low, interval.high
    undecided = high >= chance + _HALF_WAY * (1 - chance)
    near = (low <= chance and not undecided) or high < chance + _NOTHING * (1 - chance)
    return Chance(right / len(truth), low, high, chance, len(truth), near and len(truth) >= _FEWEST)


def chance_of(clean: Records) -> Chance:
    """The comparison with chance for records of clean images; their header may know the number of outputs."""
    outputs = None if clean.header.model is None else clean.header.model.outputs
    return against_chance(clean.labels, clean.top5[:, 0], outputs=outputs)


def check_above_chance(run: Run, stage: int) -> None:
    """Raise if the model is not better than chance on the clean images of all stages up to this one."""
    clean = join([run.part(CLEAN, number) for number in range(stage + 1)])
    if (chance := chance_of(clean)).near:
        raise NearChanceError(
            f"model {run.name}: {chance}. {LOOK_AT}. To measure it all the same: --anyway, or allow_chance=True. "
            f"The clean records are kept in {run.folder}"
        )
