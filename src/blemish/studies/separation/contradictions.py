"""Equal points that have different labels: found, counted, and left out."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.core.errors import InputError

_LISTED = 1000


def equal_groups(data: NDArray[Any], codes: NDArray[Any]) -> list[list[int]]:
    """Positions of equal points that are of more than one class, a list for each such point, in their order."""
    groups: dict[bytes, list[int]] = defaultdict(list)
    for row, point in enumerate(data):
        plain = point if data.dtype == np.uint8 else point + 0.0  # −0 equals 0
        groups[hashlib.blake2b(np.ascontiguousarray(plain).data, digest_size=16).digest()].append(row)
    return [rows for rows in groups.values() if len(rows) > 1 and len(set(codes[rows].tolist())) > 1]


def contradictory_pairs(data: NDArray[Any], codes: NDArray[np.int64]) -> tuple[list[tuple[int, int]], int]:
    """Pairs of equal points of different class: the first thousand, and how many there are."""
    listed: list[tuple[int, int]] = []
    count = 0
    for rows in equal_groups(data, codes):
        sizes = np.bincount(codes[rows])
        count += int(len(rows) ** 2 - (sizes**2).sum()) // 2
        for k, i in enumerate(rows if len(listed) < _LISTED else ()):
            listed += [(i, j) for j in rows[k + 1 :] if codes[i] != codes[j]]
            if len(listed) >= _LISTED:
                break
    return sorted(listed[:_LISTED]), count


def without_contradictions(points: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.int64], list[list[int]]]:
    """Positions of the points to keep, and those of the others: a list for each point that has several labels.

    All points of such a list are left out, since nothing tells which label is right.

    >>> kept, left_out = without_contradictions([[0.5], [1.0], [0.5], [2.0]], ["a", "a", "b", "b"])
    >>> kept.tolist(), left_out
    ([1, 3], [[0, 2]])
    """
    data, names = np.asanyarray(points), np.asarray(labels)
    if data.ndim < 2 or names.shape != (len(data),):
        raise InputError(f"points of shape {data.shape}, labels of shape {names.shape}; expected (N, …) and N labels")
    left_out = equal_groups(data, np.unique(names, return_inverse=True)[1])
    kept = np.ones(len(data), dtype=bool)
    kept[[row for rows in left_out for row in rows]] = False
    return np.flatnonzero(kept), left_out
