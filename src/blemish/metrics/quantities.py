"""The numbers of tasks besides classification: of each condition, the larger the better."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from blemish.metrics.formulas import Array
from blemish.metrics.overlaps import mean_iou, pixel_accuracy
from blemish.metrics.table import Kind


@dataclass(frozen=True)
class Quantity:
    """A number of one condition: the column that it is made of, and how, from what resampling gives of the column."""

    name: str
    kind: Kind
    of: Callable[[Array], Array]


def _as_it_is(values: Array) -> Array:
    return values


def _mean(values: Array) -> Array:
    return np.asarray(values.mean(axis=-1))


def _at(index: int) -> Callable[[Array], Array]:
    return lambda values: np.asarray(values[..., index])


QUANTITIES = (
    Quantity("score", "score", _as_it_is),
    Quantity("miou", "areas", mean_iou),
    Quantity("pixel_accuracy", "areas", pixel_accuracy),
    Quantity("ap", "boxes", _mean),  # over overlaps from 0.50 to 0.95
    Quantity("ap50", "boxes", _at(0)),
    Quantity("ap75", "boxes", _at(5)),
    Quantity("ap_small", "sizes", _at(0)),
    Quantity("ap_medium", "sizes", _at(1)),
    Quantity("ap_large", "sizes", _at(2)),
)
"""The quantities by name; of those of a kind the first is the one that rPC and CD are made of."""


def quantities_of(kinds: Iterable[str]) -> tuple[Quantity, ...]:
    """The quantities of some kinds of columns; none where the columns are those of classification."""
    held = set(kinds)
    return tuple(quantity for quantity in QUANTITIES if quantity.kind in held)


def main_quantity(kinds: Iterable[str]) -> str:
    """The number that conditions are told by: the error, unless there are columns of another task.

    >>> main_quantity(["correct", "confidence"]), main_quantity(["score"])
    ('error', 'score')
    """
    chosen = quantities_of(kinds)
    return chosen[0].name if chosen else "error"
