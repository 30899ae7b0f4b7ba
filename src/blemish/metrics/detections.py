"""Average precision of detections, as COCO counts it, of images with weights: exact for every resample of them.

Which boxes are hits is decided in each image by itself, so that it is found once; a resample only counts them again.
The rules are those of pycocotools: ten overlaps from 0.50 to 0.95, the 100 best boxes of an image and class, 101 levels
of recall, crowds and boxes out of a range of areas left out, and the mean over classes that the images have.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.evaluation.answers import Answers

Array = NDArray[Any]

OVERLAPS = np.linspace(0.5, 0.95, 10)
_RECALLS = np.linspace(0.0, 1.0, 101)
_MOST = 100

AREAS = {"all": (0.0, 1e10), "small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, 1e10)}
"""Ranges of areas in pixels, both ends included."""


@dataclass(frozen=True)
class Side:
    """Boxes of all images in a row: the row of each one's image, its class, and (x, y, width, height)."""

    owners: Array
    labels: Array
    boxes: Array


@dataclass(frozen=True)
class Matches:
    """A column of a table: the boxes of every image, hits or not. Its number is no mean over images.

    Boxes lie class by class, best first. ``images`` is how many there are. For several ranges of areas, all columns but
    the first follow each other in ``parts``.
    """

    images: int
    parts: tuple[_Range, ...]

    def __len__(self) -> int:
        return self.images

    def __getitem__(self, rows: Array) -> Matches:
        """Some of the images; each at most once."""
        new_row = np.full(self.images, -1)
        new_row[rows] = np.arange(len(rows))
        return Matches(len(rows), tuple(part.taken(new_row) for part in self.parts))

    def joined(self, other: Matches) -> Matches:
        """The images of both, one after the other."""
        pairs = zip(self.parts, other.parts, strict=True)
        return Matches(self.images + other.images, tuple(one.joined(two, self.images) for one, two in pairs))

    def weighted(self, weights: Array) -> Array:
        """Of images with weights (rows, images): (rows, overlaps), or (rows, ranges) of means over overlaps."""
        rates = [part.precision(weights) for part in self.parts]
        return rates[0] if len(rates) == 1 else np.stack([values.mean(axis=1) for values in rates], axis=1)


@dataclass(frozen=True)
class _Range:
    """Boxes and truth of one range of areas, class by class; boxes that count nowhere are dropped."""

    labels: Array
    owners: Array
    scores: Array
    hits: Array
    left_out: Array
    truth_labels: Array
    truth_owners: Array

    def taken(self, new_row: Array) -> _Range:
        """Those of the images that have a place."""
        kept, truth = new_row[self.owners] >= 0, new_row[self.truth_owners] >= 0
        names = ("labels", "owners", "scores", "hits", "left_out")
        columns = {name: getattr(self, name)[kept] for name in names}
        columns["owners"] = new_row[columns["owners"]]
        return _Range(**columns, truth_labels=self.truth_labels[truth], truth_owners=new_row[self.truth_owners[truth]])

    def joined(self, other: _Range, images: int) -> _Range:
        """With those of further images. Boxes of equal scores are in the order of the images' places on either side."""
        places = np.concatenate([self.owners, other.owners])
        moved = replace(other, owners=other.owners + images, truth_owners=other.truth_owners + images)
        names = ("labels", "owners", "scores", "hits", "left_out")
        columns = [np.concatenate([getattr(self, name), getattr(moved, name)]) for name in names]
        order = np.lexsort((places, -columns[2], columns[0]))
        truth = [
            np.concatenate([getattr(self, f"truth_{n}"), getattr(moved, f"truth_{n}")]) for n in ("labels", "owners")
        ]
        sorted_truth = np.argsort(truth[0], kind="stable")
        return _Range(*(column[order] for column in columns), *(column[sorted_truth] for column in truth))

    def precision(self, weights: Array) -> Array:
        """AP at each overlap, for each row of weights."""
        from blemish.ops.compiled.threads import shares, together

        kernels = _kernels()
        classes = np.unique(np.concatenate([self.labels, self.truth_labels]))
        bounds = [np.append(np.searchsorted(own, classes), len(own)) for own in (self.labels, self.truth_labels)]
        equal = self._equal()
        rows = np.ascontiguousarray(weights, dtype=np.float64)
        out = np.empty((len(rows), len(OVERLAPS)))

        def work(part: slice) -> None:
            out[part] = kernels.weighted_precision(
                rows[part],
                self.owners,
                equal,
                self.hits,
                self.left_out,
                bounds[0],
                self.truth_owners,
                bounds[1],
                _RECALLS,
                len(OVERLAPS),
            )

        together([partial(work, part) for part in shares(len(rows))])
        return out

    def _equal(self) -> Array:
        """How many boxes of a score, a class and an image begin at each box; 0 where they have begun before."""
        columns = (self.labels, self.owners, self.scores)
        other = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        begins = np.flatnonzero(np.append(True, other)[: len(self.labels)])
        equal = np.zeros(len(self.labels), np.int64)
        equal[begins] = np.diff(np.append(begins, len(self.labels)))
        return equal


def match(
    images: int,
    detected: Side,
    scores: Array,
    truth: Side,
    areas: Array,
    crowd: Array,
    *,
    ranges: Sequence[str] = ("all",),
) -> Matches:
    """Match the boxes of each image with its truth, whose ``areas`` are those of its annotations."""
    if strange := [name for name in ranges if name not in AREAS]:
        raise InputError(f"range of areas {strange[0]!r}; expected {', '.join(AREAS)}")
    best = _best(detected, scores)
    detected, scores = _some(detected, best), scores[best]
    return Matches(images, tuple(_matched(detected, scores, truth, areas, crowd, AREAS[name]) for name in ranges))


def _some(side: Side, rows: Array) -> Side:
    return Side(side.owners[rows], side.labels[rows], side.boxes[rows])


def _best(detected: Side, scores: Array) -> Array:
    """The 100 best boxes of each image and class, image by image and class by class, best first."""
    order = np.lexsort((-scores, detected.labels, detected.owners))
    if not len(order):
        return order
    owners, labels = detected.owners[order], detected.labels[order]
    begins = np.append(True, (np.diff(owners) != 0) | (np.diff(labels) != 0))
    starts = np.flatnonzero(begins)
    rank = np.arange(len(order)) - starts[np.cumsum(begins) - 1]
    return np.asarray(order[rank < _MOST])


def _matched(
    detected: Side, scores: Array, truth: Side, areas: Array, crowd: Array, area: tuple[float, float]
) -> _Range:
    ignored = crowd | (areas < area[0]) | (areas > area[1])
    by_group = np.lexsort((ignored, truth.labels, truth.owners))
    truth, crowd, ignored = _some(truth, by_group), crowd[by_group], ignored[by_group]
    size = detected.boxes[:, 2] * detected.boxes[:, 3]
    outside = (size < area[0]) | (size > area[1])
    keys = [_keys(side) for side in (detected, truth)]
    groups = np.unique(np.concatenate(keys))
    bounds = [np.append(np.searchsorted(own, groups), len(own)) for own in keys]
    boxes = [np.ascontiguousarray(side.boxes, dtype=np.float64) for side in (detected, truth)]
    hits, left_out = _kernels().matched(bounds[0], boxes[0], bounds[1], boxes[1], crowd, ignored, outside, OVERLAPS)
    kept = np.flatnonzero(left_out != 2 ** len(OVERLAPS) - 1)
    # All of a class, best first; equal ones in the order of their images, as a stable sort leaves them.
    order = kept[np.lexsort((-scores[kept], detected.labels[kept]))]
    counted = np.flatnonzero(~ignored)
    counted = counted[np.argsort(truth.labels[counted], kind="stable")]
    return _Range(
        detected.labels[order],
        detected.owners[order],
        scores[order],
        hits[order],
        left_out[order],
        truth.labels[counted],
        truth.owners[counted],
    )


def _kernels() -> Any:
    """The compiled kernels that count. There are no plain ones: they would take hours for a benchmark."""
    optional_import("numba")
    return importlib.import_module("blemish.ops.compiled.detections")


def _keys(side: Side) -> Array:
    """One number for each image and class, ascending as they lie."""
    return side.owners.astype(np.int64) * 2**32 + side.labels.astype(np.int64)


def matches_of(answers: Answers, *, ranges: Sequence[str] = ("all",)) -> Matches:
    """The matches of a condition's records. Boxes in them are (left, top, width, height)."""
    detected, truth = (_side(answers, prefix) for prefix in ("", "truth_"))
    scores = answers.lists("scores").values.astype(np.float64)
    areas, crowd = (answers.lists(f"truth_{name}").values for name in ("areas", "crowd"))
    return match(len(answers), detected, scores, truth, areas, crowd.astype(np.bool_), ranges=ranges)


def _side(answers: Answers, prefix: str) -> Side:
    labels, boxes = answers.lists(f"{prefix}labels"), answers.lists(f"{prefix}boxes")
    if not np.array_equal(4 * labels.counts, boxes.counts):
        raise InputError(f"{answers.header.condition}: {prefix}boxes without labels; expected four numbers for each")
    return Side(labels.owners, labels.values.astype(np.int64), boxes.values.reshape(-1, 4).astype(np.float64))
