"""Intervals where all images agree. Resamples of images that agree agree too, so the bootstrap has nothing to say then.

What is known of n images that agree is that at most a share of 1 − (α/2)^(1/n) of all images does otherwise (Clopper
and Pearson 1934), however many conditions each was seen under. The interval goes as far as that share could move the
metric: all rates of corrupted images up, or all down, and those of clean images beside them or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from blemish.benchmarks.condition import CLEAN
from blemish.core.errors import InputError
from blemish.core.statistics import Estimate, unanimous_interval
from blemish.metrics.formulas import Array
from blemish.metrics.maker import Metric
from blemish.metrics.table import Key, Means, Table
from blemish.metrics.titles import TITLES


def agreed(
    metric: Metric, tables: Sequence[Table], point: Means, replicates: Array, *, level: float
) -> Estimate | None:
    """The interval of a metric whose ``replicates`` have no spread, in the units it is shown in.

    ``point`` holds the means over the images of all ``tables``. None where resampling tells something, or where the
    metric is made of other things than rates on which all images agree.
    """
    if not np.isfinite(replicates).all() or not (replicates == replicates.flat[0]).all():
        return None
    asked = _Asked(point)
    value = float(metric.function(asked))
    moves: dict[Key, tuple[Array, Array]] = {}
    for key in asked.keys_read:
        ends = _ends(key, tables, level)
        if ends is None:
            return None
        moves[key] = ends
    values = [value]
    for clean, others in product((None, 0, 1), repeat=2):
        ways = {key: clean if _is_clean(key) else others for key in moves}
        moved = {key: moves[key][way] for key, way in ways.items() if way is not None}
        values.append(float(metric.function({**point, **moved})))
    if not np.isfinite(values).all():
        raise InputError("not defined for all that so few images allow: there are too few images for an interval")
    return Estimate(value, min(values), max(values)).scaled(TITLES[metric.name].scale)


class _Asked(Mapping[Key, Array]):
    """Means that note which of them a metric reads."""

    def __init__(self, means: Means) -> None:
        self.means = means
        self.keys_read: dict[Key, None] = {}

    def __getitem__(self, key: Key) -> Array:
        self.keys_read[key] = None
        return self.means[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.means)

    def __len__(self) -> int:
        return len(self.means)


def _is_clean(key: Key) -> bool:
    """Whether it is of clean images: all of them, or those beside a natural set (``clean:NAME``)."""
    return key[1].split(":")[0] == str(CLEAN)


def _ends(key: Key, tables: Sequence[Table], level: float) -> tuple[Array, Array] | None:
    """The least and the largest mean that the images allow; None where they do not agree, or are no rates."""
    if key[0] not in ("correct", "flip", "recalls"):
        return None
    table = next(table for table in tables if key in table)
    column = np.asarray(table[key])
    if key[0] != "recalls":
        if not (column == column[0]).all() or column[0] not in (0, 1):
            return None
        interval = unanimous_interval(float(column[0]), len(table.images), level=level)
        return np.asarray(interval.low), np.asarray(interval.high)
    right, member = np.split(column, 2, axis=1)  # of each image and class: whether it is right, and of the class
    seen = right[member > 0]
    if not (seen == seen[0]).all() or seen[0] not in (0, 1):
        return None
    interval = unanimous_interval(float(seen[0]), table.images_by_the_rarest, level=level)
    classes = member.mean(0, dtype=np.float64)
    low, high = (np.concatenate([end * classes, classes]) for end in (interval.low, interval.high))
    return low, high
