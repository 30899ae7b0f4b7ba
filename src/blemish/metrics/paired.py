"""Tests of the difference between two models that answered the same images."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.resampling import Swaps, Weighted, stream_of
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

    def __init__(self, first: Table, second: Table, keys: Sequence[Key]) -> None:
        self.first, self.second, self.keys_of = first, second, keys

    def __getitem__(self, key: Key) -> Array:
        difference: Array = self.first[key].astype(np.float64) - self.second[key]
        return difference

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys_of)

    def __len__(self) -> int:
        return len(self.keys_of)


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
    plain = [key for key in first if not isinstance(first[key], Weighted)]
    halves = signs.means(_Difference(first, second, plain), rows, report=report) if plain else {}
    one, other = first.only_keys(plain).means(), second.only_keys(plain).means()
    middle = {key: (one[key] + other[key]) / 2 for key in one}
    swapped = (
        {key: middle[key] + half / 2 for key, half in halves.items()},
        {key: middle[key] - half / 2 for key, half in halves.items()},
    )
    for key in first:
        if key not in halves:
            for means, values in zip(swapped, _exchanged(first[key], second[key], signs, rows), strict=True):
                means[key] = values
    return swapped


def _exchanged(first: Weighted, second: Weighted, signs: Swaps, rows: Array | None) -> tuple[Array, Array]:
    """The numbers of both models after swaps: of the images of both, each counts where its answer went."""
    both, parts = first.joined(second), tuple[list[Array], list[Array]](([], []))
    for whole in signs.blocks():
        stays = ((whole if rows is None else whole[:, rows]) + 1) / 2
        parts[0].append(both.weighted(np.concatenate([stays, 1 - stays], axis=1)))
        parts[1].append(both.weighted(np.concatenate([1 - stays, stays], axis=1)))
    return np.concatenate(parts[0]), np.concatenate(parts[1])
