"""What is made once for all images with the same settings."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Value = TypeVar("_Value", bound=Hashable)


def distinct(values: Sequence[_Value]) -> tuple[list[_Value], NDArray[np.int64]]:
    """The different ones among values, in the order in which they come, and the number of each value's own.

    >>> known, which = distinct([3.0, 1.0, 3.0])
    >>> known, which.tolist()
    ([3.0, 1.0], [0, 1, 0])
    """
    if values.count(values[0]) == len(values):  # mostly: one severity for all
        return [values[0]], np.zeros(len(values), dtype=np.int64)
    # A dictionary, because np.unique begins later than this has done, for as many as there are images.
    numbers: dict[_Value, int] = {}
    which = [numbers.setdefault(value, len(numbers)) for value in values]
    return [*numbers], np.array(which, dtype=np.int64)
