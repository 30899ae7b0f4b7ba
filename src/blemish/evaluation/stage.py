"""One stage of a run: every condition on one set of images, each measured, written and never repeated."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import CLEAN, Condition
from blemish.data.cache import Images, load
from blemish.data.natural import same_classes
from blemish.data.source import Source
from blemish.data.stored import StoredSet
from blemish.evaluation.header import made_with
from blemish.evaluation.predict import Batcher
from blemish.evaluation.records import read_header, records_bytes
from blemish.evaluation.runs import Run, record_path
from blemish.evaluation.work import Task, measure
from blemish.models.base import Classifier
from blemish.storage.files import write_bytes
from blemish.types import InputError

__all__ = ["Report", "Setting", "Stage", "Step", "fitting_batcher", "run_stage"]

# Values of a batch. On a CPU the activations of larger batches are given back to the system and zeroed by it again at
# every layer.
_CPU_VALUES = 2**20
_GPU_VALUES = 2**26

# How many images are classified again when a run is continued, and how far their confidence may be off.
_AGAIN = 8
_CONFIDENCE = 0.02


@dataclass(frozen=True)
class Step:
    """Where a run stands: ``done`` of ``total`` classifications, at present those of ``condition``."""

    condition: str
    done: int
    total: int


Report = Callable[[Step], None]


@dataclass(frozen=True)
class Setting:
    """Everything that a run was asked for."""

    benchmark: Benchmark
    model: Classifier
    source: Source
    natural: Mapping[str, Source]
    stored: StoredSet | None
    zipf: bool
    cache: str | os.PathLike[str] | None
    batch_size: int | None
    report: Report

    def check(self, *, staged: bool) -> None:
        """Refuse conditions whose images nobody gave, before any work."""
        sets = {_set_name(condition) for condition in self.benchmark.conditions if condition.other}
        missing = sorted(sets - self.natural.keys())
        if missing:
            raise InputError(f"{self.benchmark.name} needs the images of {', '.join(missing)}; name their folders")
        if sets and staged:
            raise InputError(f"{self.benchmark.name} has other sets of images, which cannot grow until they suffice")
        if self.stored is not None:
            there = {*self.stored.conditions()}
            absent = [str(c) for c in self.benchmark.conditions if c.steps and str(c) not in there]
            if absent:
                shown = ", ".join(absent[:5]) + (f" and {len(absent) - 5} more" if len(absent) > 5 else "")
                raise InputError(f"{self.stored.name}: no images of {shown}; leave them out with --only")

    def load(self, source: Source, *, crop: bool = True) -> Images:
        """The images of a source, brought to the size of the protocol."""
        protocol = self.benchmark.protocol
        return load(source, resize=protocol.resize, crop=protocol.crop if crop else None, folder=self.cache)

    def stored_mark(self, images: Images) -> str | None:
        """A fingerprint of the stored set: the pixels of one image under every condition."""
        if self.stored is None:
            return None
        first = images.take([0])
        digest = hashlib.blake2b(digest_size=16)
        for condition in self.benchmark.conditions:
            if condition.steps:
                copy = load(self.stored.source(str(condition), like=first))
                digest.update(f"{condition} {copy.fingerprint}".encode())
        return digest.hexdigest()


def fitting_batcher(images: Images, device: torch.device, size: int | None = None) -> Batcher:
    """Batches as asked, or such that a CPU's caches, or a GPU, are well used; results do not depend on it."""
    if size is not None:
        return Batcher(size)
    values = _CPU_VALUES if device.type == "cpu" else _GPU_VALUES
    return Batcher(max(1, values // int(images.shapes[0].prod())))


@dataclass(frozen=True)
class Stage:
    """The images of a stage: from the source, decoded, and those of other sets by name."""

    number: int
    source: Source
    images: Images
    others: Mapping[str, Images]


def _set_name(condition: Condition) -> str:
    return str(condition.other).partition(":")[2]


def run_stage(setting: Setting, run: Run, stage: Stage) -> None:
    """Measure what is not there yet; what is there has to be this run's."""
    conditions = setting.benchmark.conditions
    sizes = {condition: _classifications(condition, stage) for condition in conditions}
    waiting = [condition for condition in conditions if not _finished(setting, run, condition, stage.number)]
    batcher = fitting_batcher(stage.images, setting.model.device, setting.batch_size)
    if CLEAN not in waiting and waiting:
        _check_model(setting, run, stage, batcher)
    total = sum(sizes.values())
    done = total - sum(sizes[condition] for condition in waiting)

    for condition in waiting:
        name, before = str(condition), done
        setting.report(Step(name, done, total))

        def advance(count: int, name: str = name) -> None:
            nonlocal done
            done += count
            setting.report(Step(name, done, total))

        task = _task(setting, condition, stage)
        header: dict[str, Any] = {
            "condition": name,
            "benchmark": setting.benchmark.name,
            "protocol": run.info["protocol"],
            "model": run.info["model"],
            "data": run.info["stages"][stage.number],
            "pixels": task.images.fingerprint,
            "zipf": task.zipf,
            "made_with": made_with(),
        }
        records = measure(task, header, batcher, advance)
        path = record_path(run.folder, condition, stage.number)
        write_bytes(path, records_bytes(records), destination=run.folder)
        done = before + sizes[condition]


def _finished(setting: Setting, run: Run, condition: Condition, stage: int) -> bool:
    path = record_path(run.folder, condition, stage)
    if not path.is_file():
        return False
    try:
        run.check(path, condition, stage)
    except InputError as error:
        raise InputError(f"{error}; remove the file to measure it again") from error
    # Distances that nobody asked for the first time are worth measuring again.
    return not (setting.zipf and condition.is_sequence) or bool(read_header(path).get("zipf"))


def _check_model(setting: Setting, run: Run, stage: Stage, batcher: Batcher) -> None:
    """Refuse to continue with a model that no longer says what it said: weights are not all that can change."""
    before = run.part(CLEAN, stage.number)
    rows = list(range(min(_AGAIN, len(stage.images))))
    task = replace(_task(setting, CLEAN, stage), images=stage.images.take(rows))
    now = measure(task, {}, batcher, lambda _: None)
    difference = np.abs(now.label_confidence - before.label_confidence[rows])
    if (difference > _CONFIDENCE).any():
        image = now.images[difference.argmax()]
        raise InputError(
            f"{run.folder}: model {setting.model.name} no longer says what it said of {image} when the run began; "
            "choose another --out or --name"
        )


def _classifications(condition: Condition, stage: Stage) -> int:
    """How many images the model will see; the clean images of some classes are counted as if they were all."""
    if condition.other is not None and condition.other.startswith("natural:"):
        return len(stage.others[_set_name(condition)])
    return len(stage.images) * (condition.sequence().length() if condition.is_sequence else 1)


def _task(setting: Setting, condition: Condition, stage: Stage) -> Task:
    protocol = setting.benchmark.protocol
    crop = protocol.crop if setting.benchmark.has_sequences else None
    if condition.other is not None:
        name = _set_name(condition)
        if condition.other.startswith("natural:"):
            return Task(setting.model, condition, stage.others[name], protocol)
        return Task(setting.model, condition, _same_classes(name, stage), protocol, crop=crop)
    if setting.stored is not None and condition.steps:
        # Stored images have their size already, and are needed once: no cache is worth their place on the disk.
        copies = load(setting.stored.source(str(condition), like=stage.images))
        return Task(setting.model, CLEAN, copies, protocol)
    zipf = setting.zipf and condition.is_sequence
    return Task(setting.model, condition, stage.images, protocol, crop=crop, zipf=zipf)


def _same_classes(name: str, stage: Stage) -> Images:
    """The clean images of a natural set's classes, labelled as it labels them; none is decoded again."""
    part = same_classes(name, stage.source)
    place = {image: row for row, image in enumerate(stage.images.names)}
    images = stage.images.take([place[image] for image in part.names])
    return replace(images, labels=part.labels, groups=part.groups, classes=part.classes)
