"""How stable predictions are along a sequence of frames: flips, and distances between rankings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.evaluation.records import TOP, Records
from blemish.metrics.formulas import Array

Pairs = Sequence[tuple[int, int]]


def flip_fractions(first: ArrayLike, pairs: Pairs) -> Array:
    """How often the first class changes between the frames that are compared, for each image: (…, frames) to (…).

    The mean over images is the flip probability FP (Hendrycks and Dietterich 2019).

    >>> flip_fractions([[7, 7, 3, 3]], [(0, 1), (1, 2), (2, 3)]).tolist()
    [0.3333333333333333]
    """
    classes = np.asarray(first)
    before, after = _ends(pairs)
    return np.asarray((classes[..., after] != classes[..., before]).mean(-1))


def top5_distance(before: ArrayLike, after: ArrayLike) -> Array:
    """Σ_i |min(rank(i) − 1, 5) − min(rank'(i) − 1, 5)| over the five first classes i of ``before`` (…, 5).

    From Hendrycks and Dietterich (2019); only the two lists of five are needed. The sum is over the earlier list, so
    the distance is not symmetric. Places that a model with fewer than five classes leaves empty (−1) do not count.

    >>> int(top5_distance([1, 2, 3, 4, 5], [2, 1, 3, 4, 6]))
    3
    """
    first, second = np.asarray(before), np.asarray(after)
    same = first[..., :, None] == second[..., None, :]
    rank = np.where(same.any(-1), same.argmax(-1), TOP)
    moved = np.abs(rank - np.arange(TOP))
    return np.asarray(np.where(first >= 0, moved, 0).sum(-1))


def top5_distances(top5: ArrayLike, pairs: Pairs) -> Array:
    """The mean top-5 distance of the frames that are compared, for each image: (…, frames, 5) to (…).

    The mean over images is uT5D.
    """
    lists = np.asarray(top5)
    before, after = _ends(pairs)
    return np.asarray(top5_distance(lists[..., before, :], lists[..., after, :]).mean(-1))


def zipf_distances(zipf: ArrayLike, pairs: Pairs) -> Array:
    """The mean of stored Zipf distances, (…, frames) to (…); each stands at the later frame of its pair."""
    return np.asarray(np.asarray(zipf, dtype=np.float64)[..., _ends(pairs)[1]].mean(-1))


def _ends(pairs: Pairs) -> tuple[list[int], list[int]]:
    if not pairs:
        raise InputError("no frames to compare; expected at least one pair")
    return [before for before, _ in pairs], [after for _, after in pairs]


def frame_grid(records: Records) -> tuple[NDArray[np.str_], NDArray[np.intp]]:
    """The images of a sequence, in the order of their names, and the rows of their frames: (images, frames)."""
    if records.frames is None:
        raise InputError(f"{records.condition}: records without frames; expected those of a sequence")
    names, image, counts = np.unique(records.images, return_inverse=True, return_counts=True)
    order = np.lexsort((records.frames, image))
    length = int(counts.max())
    if (counts != length).any() or (records.frames[order].reshape(-1, length) != np.arange(length)).any():
        raise InputError(f"{records.condition}: {_damaged(records, length)}; expected frames 0 … {length - 1} of each")
    return names, order.reshape(-1, length)


def _damaged(records: Records, length: int) -> str:
    frames: Any = records.frames
    for name in np.unique(records.images).tolist():
        own = np.sort(frames[records.images == name])
        if own.tolist() != list(range(length)):
            return f"image {name} has {len(own)} frames, not {length} different ones"
    return "frames are missing"


def compared_frames(condition: Condition, length: int) -> list[tuple[int, int]]:
    """Which frames are compared in a sequence of this length; noise sequences compare all with the first."""
    sequence, difficulty = condition.sequence(), int(condition.steps[0].low)
    for preset in sequence.presets:
        if sequence.length(preset) == length:
            return sequence.pairs(difficulty, preset=preset)
    *first, last = sorted({sequence.length(preset) for preset in sequence.presets})
    known = f"{', '.join(map(str, first))} or {last}" if first else last
    raise InputError(f"{condition}: {length} frames per image; expected {known}")
