"""Predictions that were made elsewhere, as runs: everything that reads runs reads them.

A row is what a model answered to one image under one condition::

    model,image,condition,correct
    resnet50,a.jpg,clean,1
    resnet50,a.jpg,fog@3,0

Instead of ``condition`` there may be ``corruption`` and ``severity`` (0 for clean images), and instead of ``correct``
either ``prediction`` and ``label``, or ``score``: any number, the larger the better.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.benchmark import BALANCED, Benchmark
from blemish.benchmarks.condition import CLEAN, Condition, read_condition
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError, about
from blemish.core.printable import first_few
from blemish.corruptions.catalog import catalog, hint
from blemish.data.truth import coco_truth
from blemish.evaluation.answers import Answers, Column, Lists
from blemish.evaluation.info import BenchmarkInfo, DataInfo, ProtocolInfo, RecordsHeader, RunInfo, TaskInfo
from blemish.evaluation.runs import NOT_HERE, Run
from blemish.models.base import ModelInfo
from blemish.tasks.predicted_boxes import box_columns
from blemish.tasks.predicted_pixels import pixel_columns
from blemish.tasks.prediction_files import Sheet, read_sheet

OUTCOMES = TaskInfo("outcomes", {"correct": "bool"})
"""Right or wrong: all that classification needs but what rests on confidences."""

SCORES = TaskInfo("scores", {"score": "double"})
"""Any number of an image, the larger the better: an IoU, a reward, the share of words that were read."""

_METRICS = {"score": "score", "boxes": "ap", "pixels": "miou"}
_OWN_FAMILY = "other"
_POINT = re.compile(r"^([+-]?[0-9]+)\.0+$")
_SHOWN = 3


@dataclass(frozen=True, repr=False)
class PredictedRun(Run):
    """A run whose answers came out of a file of predictions; ``folder`` is that file."""

    held: Mapping[str, Answers]

    def finished(self, condition: Condition) -> bool:
        """Whether there are predictions under a condition."""
        return str(condition) in self.held

    def answers(self, condition: Condition) -> Answers:
        """The predictions under a condition."""
        if str(condition) not in self.held:
            raise InputError(f"{self.folder}: no predictions of {self.name} under {condition}")
        return self.held[str(condition)]


def read_predictions(
    path: str | os.PathLike[str],
    *,
    benchmark: Benchmark | str | None = None,
    model: str | None = None,
    annotations: str | os.PathLike[str] | None = None,
) -> list[Run]:
    """The models of a file of predictions, each as a run, in the order in which they first occur.

    All conditions of a model have to hold the same images. With a ``benchmark``, its metric is the headline, and
    conditions that are missing are named beside what cannot be computed for want of them; without one the conditions
    are those of the file. ``model`` is the name of the only model, where the file has no such column; ``annotations``
    is COCO's file, where the answers are boxes.
    """
    sheet = read_sheet(path)
    images, image_of = _named(sheet, "image")
    task, columns = _answers(sheet, annotations, [images[code] for code in image_of.tolist()])
    conditions, condition_of = _conditions(sheet)
    names, model_of = ([model or Path(sheet.name).stem], np.zeros(len(sheet), dtype=np.int64))
    if "model" in sheet:
        if model is not None:
            raise InputError(f"{sheet.name}: has a column model; expected no other name for it")
        names, model_of = sheet.texts("model")
    given = load_benchmark(benchmark) if isinstance(benchmark, str) else benchmark
    listed = _listed(sheet, conditions, given)
    runs: list[Run] = []
    for number, name in enumerate(names):
        rows = np.flatnonzero(model_of == number)
        info = _info(sheet, name, task, given, listed, [images[i] for i in np.unique(image_of[rows])])
        held: dict[str, Answers] = {}
        for code, condition in enumerate(conditions):
            own = rows[condition_of[rows] == code]
            if len(own):
                own = own[np.argsort(np.asarray(images, dtype=np.str_)[image_of[own]], kind="stable")]
                _check_once(sheet, own, image_of, f"{name} under {condition}")
                header = replace(info.header(0, condition), condition=str(condition))
                held[str(condition)] = _taken(header, np.asarray(images, dtype=np.str_)[image_of[own]], columns, own)
        _check_complete(sheet, name, conditions, held)
        runs.append(PredictedRun(Path(sheet.name), info, held))
    return runs


def _taken(
    header: RecordsHeader, images: NDArray[np.str_], columns: Mapping[str, Column], rows: NDArray[np.int64]
) -> Answers:
    taken: dict[str, Column] = {
        name: values.take(rows) if isinstance(values, Lists) else values[rows] for name, values in columns.items()
    }
    return Answers(header, images, taken)


def _named(sheet: Sheet, column: str) -> tuple[list[str], NDArray[np.int64]]:
    if column not in sheet:
        raise InputError(f"{sheet.name}: no column {column!r} among {', '.join(sheet.columns)}; {_EXPECTED}")
    return sheet.texts(column)


_EXPECTED = (
    "expected model, image, condition (or corruption and severity), and one of: correct; prediction and label; score; "
    "truth, prediction and pixels"
)


def _answers(
    sheet: Sheet, annotations: str | os.PathLike[str] | None, images: Sequence[str]
) -> tuple[TaskInfo, dict[str, Column]]:
    """What is held of every row, and what it is."""
    if annotations is not None:
        return box_columns(sheet, coco_truth(annotations), images)
    if "truth" in sheet and "pixels" in sheet:
        return pixel_columns(sheet, images)
    if "boxes" in sheet:
        raise InputError(f"{sheet.name}: boxes without the truth; give COCO's annotations (--annotations FILE)")
    kinds: dict[str, Callable[[], tuple[TaskInfo, dict[str, Column]]]] = {
        "correct": lambda: (OUTCOMES, {"correct": sheet.outcomes("correct")}),
        "score": lambda: (SCORES, {"score": sheet.numbers("score")}),
        "prediction": lambda: (OUTCOMES, {"correct": _matches(sheet)}),
    }
    present = [name for name in kinds if name in sheet]
    if len(present) != 1:
        what = " and ".join(present) if present else f"none of them among {', '.join(sheet.columns)}"
        raise InputError(f"{sheet.name}: {what}; expected one of correct, score, or prediction with label")
    task, columns = kinds[present[0]]()
    if task is OUTCOMES and "confidence" in sheet:
        confidence = sheet.numbers("confidence")
        if len(strange := np.flatnonzero((confidence < 0) | (confidence > 1))):
            row = int(strange[0])
            raise InputError(f"{sheet.row(row)}: confidence is {confidence[row]:g}; expected a probability, 0 … 1")
        task = replace(task, columns={**task.columns, "confidence": "float"})
        columns["confidence"] = confidence.astype(np.float32)
    return task, columns


def _matches(sheet: Sheet) -> NDArray[np.bool_]:
    """Whether predictions are the labels: as texts, without regard to capitals and to spaces around them.

    Whole numbers may be written with a point, as tables do that had a gap in the column: 3.0 is 3.
    """
    said, true = (_plain_texts(*_named(sheet, column)) for column in ("prediction", "label"))
    return np.asarray(said == true)


def _plain_texts(texts: Sequence[str], codes: NDArray[np.int64]) -> NDArray[np.str_]:
    return np.asarray([_POINT.sub(r"\1", text.strip().casefold()) for text in texts], dtype=np.str_)[codes]


def _conditions(sheet: Sheet) -> tuple[list[Condition], NDArray[np.int64]]:
    """The different conditions, and which of them each row is of."""
    if "condition" in sheet:
        texts, codes = sheet.texts("condition")
    elif "corruption" in sheet and "severity" in sheet:
        groups, group_of = sheet.texts("corruption")
        severities = sheet.numbers("severity")
        plain = [f"{value:g}" for value in severities.tolist()]
        pairs = [
            "clean" if groups[group] == "clean" or value == "0" else f"{groups[group]}@{value}"
            for group, value in zip(group_of.tolist(), plain, strict=True)
        ]
        places = {text: number for number, text in enumerate(dict.fromkeys(pairs))}
        texts, codes = list(places), np.array([places[text] for text in pairs], dtype=np.int64)
    else:
        raise InputError(
            f"{sheet.name}: no condition among {', '.join(sheet.columns)}; expected a column condition such as fog@3, "
            "or corruption and severity"
        )
    read = []
    for number, text in enumerate(texts):
        with about(sheet.row(int(np.argmax(codes == number)))):
            read.append(_condition(text))
    unique = list(dict.fromkeys(read))
    number_of = {condition: number for number, condition in enumerate(unique)}
    return unique, np.array([number_of[condition] for condition in read], dtype=np.int64)[codes]


def _condition(text: str) -> Condition:
    condition = read_condition(text)
    if condition.is_sequence:
        raise InputError(f"condition {text!r}; flips along sequences need the answers to all frames: use blemish run")
    if condition.severity == 0:
        raise InputError(f"condition {text!r}; expected clean for images without a corruption")
    return condition


def _listed(sheet: Sheet, conditions: Sequence[Condition], given: Benchmark | None) -> list[Condition]:
    """The conditions of the benchmark: those that were given, or those of the file, clean images first."""
    if given is None:
        groups = list(dict.fromkeys(condition.group for condition in conditions))
        return sorted(conditions, key=lambda c: (c != CLEAN, groups.index(c.group), c.severity or 0))
    known = set(given.conditions)
    if strange := [str(condition) for condition in conditions if condition not in known]:
        raise InputError(
            f"{sheet.name}: {first_few(strange, _SHOWN)} not in {given.name}; "
            f"{hint(strange[0], [str(condition) for condition in given.conditions])}"
        )
    if given.metric in BALANCED:
        raise InputError(f"{given.name} is headed by balanced errors, for which predictions have no classes")
    return list(given.conditions)


def _info(
    sheet: Sheet, name: str, task: TaskInfo, given: Benchmark | None, listed: Sequence[Condition], images: list[str]
) -> RunInfo:
    digest = hashlib.blake2b("\0".join(sorted(images)).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    stem = Path(sheet.name).stem
    data = DataInfo(images=len(images), name=stem, fingerprint=digest)
    is_given = given is not None and "correct" in task.columns
    metric = next((name for column, name in _METRICS.items() if column in task.columns), None)
    benchmark = BenchmarkInfo(
        name=stem if given is None else given.name,
        metric=metric or (given.metric if given is not None else "error"),
        conditions=[str(condition) for condition in listed],
        families={step: _family(step) for condition in listed for step in condition.names()},
        title="" if given is None else given.title,
        baseline=given.baseline if given is not None and is_given else None,
    )
    return RunInfo(
        benchmark=benchmark,
        protocol=ProtocolInfo(storage=NOT_HERE, pixels=NOT_HERE, labels=NOT_HERE),
        model=ModelInfo(name, kind="predictions"),
        data=data,
        stages=(data,),
        task=task,
    )


def _family(name: str) -> str:
    return catalog[name].family if name in catalog else _OWN_FAMILY


def _check_once(sheet: Sheet, rows: NDArray[np.int64], image_of: NDArray[np.int64], where: str) -> None:
    owners = image_of[rows]
    if len(twice := np.flatnonzero(owners[1:] == owners[:-1])):
        first, second = sorted((int(rows[twice[0]]), int(rows[twice[0] + 1])))
        raise InputError(f"{sheet.row(second)}: a second prediction of {where} for the image of row {first + 1}")


def _check_complete(sheet: Sheet, name: str, conditions: Sequence[Condition], held: Mapping[str, Answers]) -> None:
    """Refuse a model that was asked for other images under one condition than under another."""
    sets: dict[str, dict[str, NDArray[np.str_]]] = {}
    for condition in conditions:
        if str(condition) in held:
            sets.setdefault(condition.other or "", {})[str(condition)] = held[str(condition)].images
    for own in sets.values():
        everything = np.unique(np.concatenate(list(own.values())))
        for text, images in own.items():
            missing = np.setdiff1d(everything, images, assume_unique=True).tolist()
            if missing:
                raise InputError(
                    f"{sheet.name}: {name} has no prediction under {text} for {len(missing)} of {len(everything)} "
                    f"images: {first_few(missing, _SHOWN)}"
                )
