"""How far measured accuracies can be trusted: intervals of cells and of means over cells, and rises beyond chance.

All cells are measured on the same images, so whatever compares or averages cells does so image by image.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate, check_level, normal_quantile, wilson_interval
from blemish.metrics.paired import mcnemar_p_value
from blemish.studies.streams.surface import Surface

_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1).astype(np.int64)
"""How many bits are set in a byte."""


def cell_interval(surface: Surface, cell: tuple[int, int], *, level: float = 0.95) -> Estimate:
    """The accuracy of a cell with Wilson's interval; a cell that was not measured has none."""
    if not surface.known[cell]:
        raise InputError(f"cell {cell} of {surface.first} and {surface.second} was interpolated, not measured")
    return wilson_interval(round(float(surface.accuracy[cell]) * surface.images, 9), surface.images, level=level)


def mean_interval(rights: Iterable[NDArray[np.bool_]], *, level: float = 0.95) -> Estimate:
    """The mean accuracy over cells, each given as which images were right, and its normal interval over images.

    >>> mean = mean_interval([np.array([True, True, False, False]), np.array([True, False, True, False])])
    >>> mean.value, round(mean.width / 2, 3)
    (0.5, 0.4)
    """
    check_level(level)
    total: NDArray[np.float64] | None = None
    cells = 0
    for right in rights:
        total = right.astype(np.float64) if total is None else total + right
        cells += 1
    if total is None or len(total) < 2:
        raise InputError("no cells, or a single image, to average over; expected some of both")
    each = total / cells
    half = normal_quantile(level) * float(each.std(ddof=1)) / math.sqrt(len(each))
    mean = float(each.mean())
    return Estimate(mean, max(0.0, mean - half), min(1.0, mean + half))


class Rises(NamedTuple):
    """Neighbouring measured cells, those whose accuracy rises with severity, and those that do so beyond chance."""

    neighbours: int
    rises: int
    certain: int


def certain_rises(surfaces: Iterable[Surface], *, alpha: float = 0.05) -> Rises:
    """How many rises with severity are more than chance, by McNemar's exact test on the images of both cells.

    The chance of even one false alarm is at most ``alpha``: p-values count below alpha / neighbours (Bonferroni).
    """
    neighbours, gains = 0, []
    for surface in surfaces:
        for gained, lost in _exchanges(surface):
            neighbours += len(gained)
            gains += [(int(a), int(b)) for a, b in zip(gained, lost, strict=True) if a > b]
    certain = sum(mcnemar_p_value(gained, lost) < alpha / neighbours for gained, lost in gains)
    return Rises(neighbours, len(gains), certain)


def _exchanges(surface: Surface) -> Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For both axes: images that turn right and images that turn wrong from each measured cell to the next."""
    if surface.hits is None:
        raise InputError(f"the surface of {surface.first} and {surface.second} does not say which images were right")
    for axis in (0, 1):
        hits, known = np.moveaxis(surface.hits, axis, 0), np.moveaxis(surface.known, axis, 0)
        both = known[:-1] & known[1:]
        before, after = hits[:-1][both], hits[1:][both]
        yield _BITS[after & ~before].sum(-1), _BITS[before & ~after].sum(-1)
