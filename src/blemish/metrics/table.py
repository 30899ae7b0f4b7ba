"""From the records of a run to columns over images: everything that metrics take means of.

Images are matched by name. All conditions of a table hold the same images; a natural set is a table of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.benchmark import BALANCED
from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.resampling import Weighted
from blemish.evaluation.answers import Answers
from blemish.evaluation.records import Records
from blemish.evaluation.runs import Run
from blemish.metrics.calibration import bin_gaps
from blemish.metrics.detections import matches_of
from blemish.metrics.flips import (
    compared_frames,
    flip_fractions,
    frame_grid,
    top5_distances,
    zipf_distances,
)
from blemish.metrics.formulas import Array, class_hits
from blemish.metrics.label_hits import label_outcomes
from blemish.metrics.overlaps import areas_of

Kind = Literal["correct", "confidence", "gaps", "recalls", "flip", "top5", "zipf", "score", "boxes", "sizes", "areas"]
"""What is measured on an image: correct or not, confidence, calibration gaps by bin, correct or not by class; along a
sequence the fraction of flips and the mean distances between rankings. Other tasks have kinds of their own: ``score``
is any number of an image, the larger the better, ``boxes`` are detections, hits or not, and ``sizes`` the same by the
size of what is detected; ``areas`` are the pixels of each class that are both, true and said."""

Key = tuple[Kind, str]
"""A kind and a condition, as text."""

_SIZES = ("small", "medium", "large")
_OUTCOMES: tuple[Kind, ...] = ("correct", "confidence")

Means = Mapping[Key, Array]
"""Means over images, with whatever leading axes resampling adds; calibration gaps have a last axis of bins."""


@dataclass(frozen=True)
class Table(Mapping[Key, Any]):
    """Columns over the same images, in the order of their names. Calibration gaps are made when they are asked for.

    So are recalls, where there are ``labels``: the benchmark is then headed by balanced errors.
    """

    name: str
    images: NDArray[np.str_]
    columns: Mapping[Key, Any]
    labels: NDArray[np.int32] | None = None

    def __getitem__(self, key: Key) -> Any:
        kind, text = key
        if kind == "gaps":
            return bin_gaps(self.columns["confidence", text], self.columns["correct", text])
        if kind == "recalls" and self.labels is not None:
            return class_hits(self.columns["correct", text], self.labels)
        return self.columns[key]

    def __iter__(self) -> Iterator[Key]:
        yield from self.columns
        yield from (("gaps", text) for kind, text in self.columns if kind == "confidence")
        if self.labels is not None:
            yield from (("recalls", text) for kind, text in self.columns if kind == "correct")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def images_by_the_rarest(self) -> int:
        """As many images as if all classes had as few as the rarest.

        So many in agreement bound a balanced error: no spread of errors over classes makes agreement likelier.
        """
        hits = next((values for (kind, _), values in self.columns.items() if kind == "recalls"), None)
        if hits is not None:  # of several labels: each image is of one class of every label, of two
            member = hits[:, hits.shape[1] // 2 :].sum(0)
            return int(member[member > 0].min()) * 2
        counts = np.unique(self.images if self.labels is None else self.labels, return_counts=True)[1]
        return int(counts.min()) * len(counts)

    def means(self) -> dict[Key, Array]:
        """The means over images."""
        return {key: _mean(self[key]) for key in self}

    def only(self, *kinds: Kind) -> Table:
        """The columns of some kinds; calibration gaps come with confidences, and recalls with outcomes."""
        return replace(self, columns={key: values for key, values in self.columns.items() if key[0] in kinds})

    def only_keys(self, keys: Sequence[Key]) -> Table:
        """Some of the columns, with what is made of them."""
        return replace(self, columns={key: values for key, values in self.columns.items() if key in keys})

    def take(self, keys: Sequence[Key], images: NDArray[np.str_]) -> Table:
        """Some of the columns and images."""
        rows = np.searchsorted(self.images, images)
        labels = None if self.labels is None else self.labels[rows]
        return Table(self.name, images, {key: self.columns[key][rows] for key in keys}, labels)


def _mean(column: Array | Weighted) -> Array:
    if isinstance(column, Weighted):
        return np.asarray(column.weighted(np.ones((1, len(column)), dtype=np.float32))[0])
    return np.asarray(np.mean(column, axis=0, dtype=np.float64))


def drawn_with(tables: Sequence[Table], table: Table) -> tuple[Table, NDArray[np.intp] | None]:
    """The table whose images are resampled for this one, and which of them are its own, where not all.

    The clean images of a natural set's classes are some of the clean images, and shared with those of other sets.
    """
    whole = tables[0]
    if whole.name or not table.name.startswith("clean:") or not np.isin(table.images, whole.images).all():
        return table, None
    return whole, np.searchsorted(whole.images, table.images)


def read_tables(run: Run, conditions: Sequence[Condition], *, report: ProgressReport = tell_nobody) -> list[Table]:
    """The tables of a run: first that of its own images, then one for each natural set or part of the classes."""
    columns: dict[str, dict[Key, NDArray[Any]]] = {}
    labels: dict[str, NDArray[np.int32]] = {}
    balanced = run.info.benchmark.metric in BALANCED
    images: dict[str, tuple[str, NDArray[np.str_]]] = {}
    for number, condition in enumerate(conditions):
        report(number, len(conditions), f"reading {run.name}")
        if run.info.task is not None:
            answers = run.answers(condition).in_order()
            names, measured, own_labels = answers.images, columns_of(answers), None
        else:
            records = run.records(condition)
            if len(records) == 0:
                raise InputError(f"{run.folder}: the records of {condition} hold no images")
            names, measured = _columns(condition, records)
            own_labels = records.labels[np.argsort(records.images, kind="stable")] if balanced else None
        table = condition.other or ""
        first, expected = images.setdefault(table, (str(condition), names))
        _check_images(run, (first, expected), (str(condition), names))
        columns.setdefault(table, {}).update(measured)
        if own_labels is not None and not condition.is_sequence:
            labels.setdefault(table, own_labels)
    return [Table(name, images[name][1], columns[name], labels.get(name)) for name in sorted(columns)]


def columns_of(answers: Answers) -> dict[Key, Any]:
    """The columns of a task's answers. One that is not known is refused: any number would be a guess."""
    name, text = answers.task.name, answers.header.condition
    if name not in _OF_TASKS:
        raise InputError(f"{text}: records of the task {name}; expected one of {', '.join(_OF_TASKS)}")
    return {(kind, text): column for kind, column in _OF_TASKS[name](answers).items()}


_OF_TASKS: dict[str, Callable[[Answers], dict[Kind, Any]]] = {
    "outcomes": lambda answers: {kind: answers.numbers(kind) for kind in _OUTCOMES if kind in answers.columns},
    "scores": lambda answers: {"score": answers.numbers("score")},
    "multilabel": lambda answers: dict(zip(("correct", "recalls"), label_outcomes(answers), strict=True)),
    "segmentation": lambda answers: {"areas": areas_of(answers)},
    "detection": lambda answers: {"boxes": matches_of(answers), "sizes": matches_of(answers, ranges=_SIZES)},
}


def _columns(condition: Condition, records: Records) -> tuple[NDArray[np.str_], dict[Key, NDArray[Any]]]:
    text = str(condition)
    if condition.is_sequence:
        names, grid = frame_grid(records)
        pairs = compared_frames(condition, grid.shape[1])
        top5 = records.top5[grid]
        columns: dict[Key, NDArray[Any]] = {
            ("flip", text): flip_fractions(top5[..., 0], pairs),
            ("top5", text): top5_distances(top5, pairs),
        }
        if records.zipf is not None:
            columns["zipf", text] = zipf_distances(records.zipf[grid], pairs)
        return names, columns
    order = np.argsort(records.images, kind="stable")
    names = records.images[order]
    twice = names[1:][names[1:] == names[:-1]]
    if len(twice):
        raise InputError(f"{condition}: image {twice[0]} has several records; expected one per image")
    return names, {("correct", text): records.correct[order], ("confidence", text): records.confidence[order]}


def _check_images(run: Run, one: tuple[str, NDArray[np.str_]], other: tuple[str, NDArray[np.str_]]) -> None:
    if np.array_equal(one[1], other[1]):
        return
    for (here, names), (there, others) in ((one, other), (other, one)):
        missing = np.setdiff1d(names, others, assume_unique=True)
        if len(missing):
            more = f" and {len(missing) - 1} others are" if len(missing) > 1 else " is"
            raise InputError(
                f"{run.folder}: image {missing[0]}{more} among the records of {here}, but not of {there}; "
                "expected the same images under all conditions"
            )


def shared_images(one: Table, other: Table) -> NDArray[np.str_]:
    """The names of the images that both hold, in order."""
    return np.intersect1d(one.images, other.images, assume_unique=True)
