"""Tests of the difference between two models that answered the same images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.resampling import Swaps, stream_of
from blemish.metrics.formulas import Array
from blemish.metrics.table import Key, Table, drawn_with


def mcnemar_p_value(only_first: int, only_second: int) -> float:
    """McNemar's exact test, two-sided: of the images that one model alone gets right, are half the first one's?

    >>> mcnemar_p_value(0, 5)
    0.0625
    """
    if only_first < 0 or only_second < 0:
        raise InputError(f"counts {only_first} and {only_second}; expected 0 or more")
    total, fewer = only_first + only_second, min(only_first, only_second)
    steps = np.arange(1, fewer + 1)
    # Logarithms of C(total, k), k = 0 … fewer, less total · log 2: the numbers themselves leave the range of floats.
    logs = np.concatenate([[0.0], np.cumsum(np.log((total - steps + 1) / steps))]) - total * math.log(2)
    return min(1.0, 2 * float(np.exp(logs).sum()))


def swap_p_value(difference: float, swapped: Array) -> float:
    """How often swapping gives a difference at least as large, either way; the one observed counts as a swap too.

    >>> swap_p_value(3.0, np.array([1.0, -3.0, 2.0]))
    0.5
    """
    # Equal differences have to count, although sums in float32 may differ in their last bits.
    slack = 1e-7 * (1 + abs(difference))
    extreme = int(np.count_nonzero(np.abs(swapped) >= abs(difference) - slack))
    return (1 + extreme) / (1 + len(swapped))


class _Difference(Mapping[Key, Array]):
    """The columns of one table less those of another."""

    def __init__(self, first: Table, second: Table) -> None:
        self.first, self.second = first, second

    def __getitem__(self, key: Key) -> Array:
        return self.first[key].astype(np.float64) - self.second[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.first)

    def __len__(self) -> int:
        return len(self.first)


def swapped_means(
    first: Table,
    second: Table,
    *,
    replicates: int,
    seed: int,
    tables: Sequence[Table] = (),
    report: ProgressReport = tell_nobody,
) -> tuple[dict[Key, Array], dict[Key, Array]]:
    """Means of both models after their answers to each image changed places, all together, with probability ½.

    If the models did not differ, this would change nothing but chance. Both tables hold the same images and columns.
    ``tables`` are all of the first model's: an image that several hold changes places in all of them.
    """
    whole, rows = drawn_with(tables or [first], first)
    signs = Swaps(len(whole.images), replicates, seed, stream_of(whole.name))
    halves = signs.means(_Difference(first, second), rows, report=report)
    one, other = first.means(), second.means()
    middle = {key: (one[key] + other[key]) / 2 for key in one}
    return (
        {key: middle[key] + half / 2 for key, half in halves.items()},
        {key: middle[key] - half / 2 for key, half in halves.items()},
    )
