"""What a model said of every image under every corruption, side by side, and the pictures kept for a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError
from blemish.core.reading import is_there
from blemish.data.arrays import read_members
from blemish.evaluation.records import Records
from blemish.evaluation.runs import PICTURES, Run

_MOST_BYTES = 1 << 29
_REQUIRED = ("names", "images", "labels", "ids")


@dataclass(frozen=True)
class Answers:
    """First classes, their confidence and that of the label: a row per corrupted condition, a column per image."""

    names: NDArray[np.str_]
    labels: NDArray[np.int32]
    clean: Records
    conditions: tuple[Condition, ...]
    top1: NDArray[np.int32]
    confidence: NDArray[np.float32]
    label_confidence: NDArray[np.float32]

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which answers are not the label."""
        return np.asarray(self.top1 != self.labels)

    def column(self, name: str) -> int | None:
        """Where an image stands."""
        columns = np.flatnonzero(self.names == name)
        return int(columns[0]) if len(columns) else None


def gather(run: Run) -> Answers | None:
    """The answers to all corruptions that were measured; sequences and other sets of images are left out.

    None where clean images, with which they are compared, are not measured, and for tasks besides classification.
    """
    if run.info.task is not None:  # whose answers are no classes
        return None
    if CLEAN not in run.conditions or not run.finished(CLEAN):
        return None
    clean = run.records(CLEAN)
    chosen = tuple(
        condition
        for condition in run.conditions
        if condition.steps and not condition.is_sequence and run.finished(condition)
    )
    shape = (len(chosen), len(clean))
    top1, confidence, label = np.empty(shape, np.int32), np.empty(shape, np.float32), np.empty(shape, np.float32)
    for row, condition in enumerate(chosen):
        records = _in_order(run.records(condition), clean.images, run.folder)
        top1[row], confidence[row], label[row] = records.top5[:, 0], records.confidence, records.label_confidence
    return Answers(clean.images, clean.labels, clean, chosen, top1, confidence, label)


def _in_order(records: Records, names: NDArray[np.str_], folder: Path) -> Records:
    if np.array_equal(records.images, names):
        return records
    if len(records) != len(names) or set(records.images.tolist()) != set(names.tolist()):
        raise InputError(f"{folder}: the images of {records.condition} are not those of clean; expected the same")
    row_of = {name: row for row, name in enumerate(records.images.tolist())}
    return records.take(np.array([row_of[name] for name in names.tolist()]))


@dataclass(frozen=True)
class Hit:
    """An image that is right when clean and wrong under many conditions."""

    name: str
    label: int
    wrong: int
    out_of: int
    mistaken_for: int
    times: int
    mildest: tuple[int, ...]
    """The rows of a few answers that are wrong, the lowest severities and the most confident first."""


def worst_hit(answers: Answers, count: int, *, shown: int = 3) -> list[Hit]:
    """The images that are right when clean and wrong under most conditions; among equals, the least confident."""
    if not answers.conditions:
        return []
    wrong = answers.wrong
    counts = wrong.sum(0)
    order = np.lexsort((answers.label_confidence.mean(0), -counts))
    fit = [int(column) for column in order if answers.clean.correct[column] and counts[column] > 0][:count]
    return [_hit(answers, wrong, column, shown) for column in fit]


def _hit(answers: Answers, wrong: NDArray[np.bool_], column: int, shown: int) -> Hit:
    rows = np.flatnonzero(wrong[:, column])
    given, times = np.unique(answers.top1[rows, column], return_counts=True)
    most = int(times.argmax())
    severities = np.array([answers.conditions[row].severity or np.inf for row in rows])
    order = np.lexsort((-answers.confidence[rows, column], severities))
    groups: dict[str, int] = {}
    for row in rows[order].tolist():
        groups.setdefault(answers.conditions[row].group, row)
    return Hit(
        name=str(answers.names[column]),
        label=int(answers.labels[column]),
        wrong=len(rows),
        out_of=len(answers.conditions),
        mistaken_for=int(given[most]),
        times=int(times[most]),
        mildest=tuple(groups.values())[:shown],
    )


@dataclass(frozen=True)
class Pictures:
    """A few of the images as the corruptions were given them, (n, H, W, C) of uint8, and the names of classes."""

    names: tuple[str, ...]
    images: NDArray[np.uint8]
    labels: NDArray[np.int64]
    ids: NDArray[np.int64]
    classes: tuple[str, ...] | None = None

    def row(self, name: str) -> int | None:
        """The position of an image."""
        return self.names.index(name) if name in self.names else None


def read_pictures(run: Run) -> Pictures | None:
    """The pictures kept with a run; None where it has none."""
    path = run.folder / PICTURES
    if not is_there(path):
        return None
    try:
        return _checked(path, read_members(path, (*_REQUIRED, "classes"), most=_MOST_BYTES))
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not readable pictures ({error})") from error


def _checked(path: Path, arrays: dict[str, NDArray[np.generic]]) -> Pictures:
    missing = [name for name in _REQUIRED if name not in arrays]
    if missing:
        raise InputError(f"{path}: no {', '.join(missing)} in it; expected names, images, labels and ids")
    images, names = arrays["images"], arrays["names"]
    shape = images.shape
    if images.dtype != np.uint8 or images.ndim != 4 or shape[-1] not in (1, 3):
        raise InputError(f"{path}: images of {images.dtype} {shape}; expected uint8 (n, height, width, 1 or 3)")
    for name in ("names", "labels", "ids"):
        if arrays[name].shape != shape[:1]:
            raise InputError(f"{path}: {name} of shape {arrays[name].shape} for {shape[0]} images; expected one each")
    classes = arrays.get("classes")
    return Pictures(
        names=tuple(str(name) for name in names.tolist()),
        images=np.asarray(images, np.uint8),
        labels=np.asarray(arrays["labels"], np.int64),
        ids=np.asarray(arrays["ids"], np.int64),
        classes=None if classes is None else tuple(str(name) for name in classes.tolist()),
    )


def class_name(number: int, classes: tuple[str, ...] | None) -> str:
    """A class by its name where that is known.

    >>> class_name(1, ("cat", "dog")), class_name(1, None), class_name(-1, None)
    ('dog', 'class 1', 'nothing')
    """
    if number < 0:
        return "nothing"
    return classes[number] if classes is not None and number < len(classes) else f"class {number}"
