"""Scores of a model on a stream: running means, segments, the accuracy that was held, and collapse."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.studies.streams.walks import Walk

WINDOW = 50_000
"""The published window: the last 50,000 images."""

Correct = NDArray[np.bool_]
Span = tuple[int, int, int, int]


def default_window(images: int) -> int:
    """50,000 images, or a tenth of a stream that is shorter than ten windows.

    >>> default_window(7_500_000), default_window(100_000)
    (50000, 10000)
    """
    return max(1, min(WINDOW, images // 10))


def running_mean(correct: Correct, window: int) -> NDArray[np.float64]:
    """Top-1 accuracy over the last ``window`` images, at every image from the first full window on.

    >>> running_mean(np.array([True, False, True, True]), 2).tolist()
    [0.5, 0.5, 1.0]
    """
    if not 1 <= window <= len(correct):
        raise InputError(f"a window of {window} images over a stream of {len(correct)}; expected 1 … {len(correct)}")
    total = np.concatenate([[0], np.cumsum(correct, dtype=np.int64)])
    mean: NDArray[np.float64] = (total[window:] - total[:-window]) / window
    return mean


class Summary(NamedTuple):
    """Least, mean and greatest running mean over a run, where the least is reached, and the accuracy overall."""

    images: int
    window: int
    minimum: float
    mean: float
    maximum: float
    lowest_at: int
    accuracy: float


def summary(correct: Correct, window: int | None = None) -> Summary:
    """The summary statistics of the paper; ``lowest_at`` is the last image of the worst window."""
    size = default_window(len(correct)) if window is None else window
    means = running_mean(correct, size)
    low = int(means.argmin())
    return Summary(
        len(correct),
        size,
        float(means.min()),
        float(means.mean()),
        float(means.max()),
        low + size - 1,
        float(np.mean(correct)),
    )


@dataclass(frozen=True)
class Segment:
    """One path of a walk, from one corruption to the next, as a stream went through it."""

    first: str
    second: str
    start: int
    images: int
    accuracy: float
    calibrated: float


def step_accuracies(correct: Correct, walk: Walk) -> list[tuple[int, int, float, float]]:
    """For each step a stream went through: its number, its images, their accuracy and the calibrated one."""
    return [
        (number, end - begin, float(np.mean(correct[begin:end])), walk.steps[number].accuracy)
        for _, number, begin, end in _spans(len(correct), walk)
    ]


def _spans(images: int, walk: Walk) -> list[Span]:
    """The laps and steps a stream went through, each with its first position and the one after its last."""
    return [(*divmod(turn, len(walk.steps)), begin, end) for turn, begin, end in walk.spans(0, images)]


def segment_accuracies(correct: Correct, walk: Walk) -> list[Segment]:
    """The accuracy along each path of the walk that the stream went through; laps count anew."""
    paths = itertools.groupby(_spans(len(correct), walk), lambda span: (span[0], walk.steps[span[1]].segment))
    return [_segment(correct, walk, list(spans)) for _, spans in paths]


def _segment(correct: Correct, walk: Walk, spans: Sequence[Span]) -> Segment:
    first = walk.steps[spans[0][1]]
    begin, end = spans[0][2], spans[-1][3]
    calibrated = np.average([walk.steps[n].accuracy for _, n, _, _ in spans], weights=[b - a for _, _, a, b in spans])
    return Segment(first.first, first.second, begin, end - begin, float(np.mean(correct[begin:end])), float(calibrated))


class Held(NamedTuple):
    """How well the unadapted model's accuracy was held at the target, over the steps of a walk.

    ``bias`` is the mean over steps less the target; ``deviation`` the mean absolute deviation of steps from it.
    """

    mean: float
    bias: float
    deviation: float
    steps: int


def held_accuracy(correct: Correct, walk: Walk, target: float) -> Held:
    """Whether the walk does what it was calibrated for, measured on the unadapted model."""
    steps = np.array([accuracy for _, _, accuracy, _ in step_accuracies(correct, walk)])
    return Held(float(steps.mean()), float(steps.mean() - target), float(np.abs(steps - target).mean()), len(steps))


class Collapse(NamedTuple):
    """Where an adapted model fell behind the one that was never adapted.

    ``at`` is the last image of the first window in which it is behind, ``until`` that of the last such window before
    it is ahead again, or the end of the stream; ``loss`` is the greatest difference in between.
    """

    at: int
    until: int
    loss: float
    to_the_end: bool


def find_collapse(adapted: Correct, unadapted: Correct, window: int | None = None) -> Collapse | None:
    """The first time that the running mean of a model is behind the unadapted one's for a whole window of images.

    A window must pass without it being ahead once, so that chance does not count. None where that never happens.
    """
    if len(adapted) != len(unadapted):
        raise InputError(f"{len(adapted)} adapted and {len(unadapted)} unadapted predictions; expected one stream")
    size = default_window(len(adapted)) if window is None else window
    gap = running_mean(adapted, size) - running_mean(unadapted, size)
    behind = np.concatenate([[False], gap < 0, [False]])
    edges = np.flatnonzero(np.diff(behind.astype(np.int8)))
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if end - begin >= size:
            loss = float(-gap[begin:end].min())
            return Collapse(begin + size - 1, end + size - 2, loss, end == len(gap))
    return None
