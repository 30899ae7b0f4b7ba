"""From records to tables: what several models got right, by corruption, as construction reads it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.data.arrays import read_members
from blemish.evaluation.runs import Run
from blemish.studies.construction.tables import AccuracyTable

_ARRAYS = ("correct", "models", "settings")


@dataclass(frozen=True)
class Correct:
    """``correct[m, s, i]``: whether model m classified image i correctly under setting s; all saw the same images."""

    correct: NDArray[np.bool_]
    models: tuple[str, ...]
    settings: tuple[str, ...]


def gather_correct(runs: Sequence[Run]) -> Correct:
    """Correctness image by image, of runs that share their conditions, one per corruption, and their images."""
    conditions = _shared(runs)
    names = [condition.group for condition in conditions]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"{', '.join(twice)} at several severities; expected one condition per corruption to compare image by image"
        )
    if not conditions:
        raise InputError(f"{runs[0].folder}: no conditions to compare image by image; expected at least one")
    images = runs[0].records(conditions[0]).images
    rows = []
    for run in runs:
        measured = {condition: run.records(condition) for condition in conditions}
        for condition, records in measured.items():
            if not np.array_equal(records.images, images):
                raise InputError(f"{run.folder}: {condition} has other images than {runs[0].folder}; expected the same")
        rows.append([records.correct for records in measured.values()])
    return Correct(np.array(rows), _models(runs), tuple(names))


def write_correct(table: Correct, path: Path) -> None:
    """Write correctness as an .npz file, which is complete or not there."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, correct=table.correct, models=np.array(table.models), settings=np.array(table.settings))
    write_bytes(path, buffer.getvalue())


def read_correct(path: Path) -> Correct:
    """Correctness image by image, as `write_correct` writes it."""
    arrays = read_members(path, _ARRAYS)
    for name in _ARRAYS:
        if name not in arrays:
            raise InputError(f"{path}: no {name} in it; expected an .npz file with {', '.join(_ARRAYS)}")
    if any(arrays[name].ndim != 1 or arrays[name].dtype.kind != "U" for name in _ARRAYS[1:]):
        raise InputError(f"{path}: models and settings; expected a row of names each")
    return Correct(arrays["correct"], tuple(arrays["models"].tolist()), tuple(arrays["settings"].tolist()))


def gather_accuracies(runs: Sequence[Run]) -> AccuracyTable:
    """Accuracies of models (rows) by corruption (columns), over all severities that a corruption was measured at.

    Natural sets are columns too, each beside one of the clean images of its classes.
    """
    conditions = _shared(runs, natural=True)
    groups = tuple(dict.fromkeys(condition.group for condition in conditions))
    values = np.array(
        [
            [
                np.mean([run.correct(condition).mean() for condition in conditions if condition.group == g])
                for g in groups
            ]
            for run in runs
        ]
    )
    return AccuracyTable(_models(runs), groups, values)


def _models(runs: Sequence[Run]) -> tuple[str, ...]:
    names = tuple(run.name for run in runs)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"several runs of {', '.join(twice)}; expected each model once")
    return names


def _shared(runs: Sequence[Run], *, natural: bool = False) -> list[Condition]:
    """The conditions of all runs; runs that were not measured alike are refused."""
    if not runs:
        raise InputError("no runs; expected at least one")
    first = runs[0]
    for run in runs[1:]:
        for part in ("protocol", "data"):
            if getattr(run.info, part) != getattr(first.info, part):
                raise InputError(f"{run.folder} and {first.folder} differ in {part}; expected runs of one protocol")
        if run.conditions != first.conditions:
            raise InputError(f"{run.folder} and {first.folder} have other conditions; expected the same")
    return [
        condition
        for condition in first.conditions
        if not condition.is_sequence and (natural or condition.other is None)
    ]
