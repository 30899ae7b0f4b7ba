"""What a run was asked for, and a stage of it: the images, and which of them each condition asks for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError
from blemish.data.cache import Images, Progress, load
from blemish.data.natural import same_classes
from blemish.data.source import Source
from blemish.data.stored import StoredSet
from blemish.evaluation.chance import LOOK_AT, NearChanceError, chance_of
from blemish.evaluation.executors.base import Executor
from blemish.evaluation.executors.in_process import InProcess
from blemish.evaluation.predict import Batcher
from blemish.evaluation.records import join, read_header
from blemish.evaluation.runs import Run, record_path
from blemish.evaluation.shards import STORED
from blemish.evaluation.work import Task, measure
from blemish.models.base import Classifier

__all__ = [
    "Report",
    "Setting",
    "Stage",
    "Step",
    "check_chance",
    "check_model",
    "fitting_batcher",
    "is_finished",
    "set_name",
    "view_name",
    "views_of",
]

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
    executor: Executor = field(default_factory=InProcess)
    outputs: int | None = None
    allow_chance: bool = False
    reading: Progress | None = None

    def check(self, *, staged: bool) -> None:
        """Refuse conditions whose images nobody gave, or whose pixels cannot be made here, before any work."""
        if self.stored is None:
            for condition in self.benchmark.conditions:
                condition.check_files()
        sets = {set_name(condition) for condition in self.benchmark.conditions if condition.other}
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
        side = protocol.crop if crop else None
        return load(source, resize=protocol.resize, crop=side, folder=self.cache, progress=self.reading)

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


def set_name(condition: Condition) -> str:
    """The natural set that a condition is about.

    >>> from blemish.benchmarks.condition import parse_condition
    >>> set_name(parse_condition("natural:imagenet-r"))
    'imagenet-r'
    """
    return str(condition.other).partition(":")[2]


def view_name(setting: Setting, condition: Condition) -> str:
    """Which images a condition asks for: those of the run, of another set, of its classes, or stored ones."""
    if condition.other is not None:
        return str(condition.other)
    return STORED if setting.stored is not None and condition.steps else ""


def views_of(setting: Setting, stage: Stage, conditions: Sequence[Condition]) -> dict[str, Images]:
    """The images that conditions ask for, by the names of their views."""
    views = {"": stage.images}
    for condition in conditions:
        name = view_name(setting, condition)
        if name not in views and name != STORED:
            views[name] = _other_images(set_name(condition), name, stage)
    return views


def _other_images(name: str, view: str, stage: Stage) -> Images:
    return stage.others[name] if view.startswith("natural:") else _same_classes(name, stage)


def is_finished(setting: Setting, run: Run, condition: Condition, stage: int) -> bool:
    """Whether the records of a condition are there, made in the way of this run."""
    path = record_path(run.folder, condition, stage)
    if not path.is_file():
        return False
    try:
        run.check(path, condition, stage)
    except InputError as error:
        raise InputError(f"{error}; remove the file to measure it again") from error
    # Distances that nobody asked for the first time are worth measuring again.
    return not (setting.zipf and condition.is_sequence) or bool(read_header(path).get("zipf"))


def check_model(setting: Setting, run: Run, stage: Stage, batcher: Batcher) -> None:
    """Refuse to continue with a model that no longer says what it said: weights are not all that can change."""
    before = run.part(CLEAN, stage.number)
    rows = list(range(min(_AGAIN, len(stage.images))))
    protocol = setting.benchmark.protocol
    crop = protocol.crop if setting.benchmark.has_sequences else None
    task = Task(setting.model, CLEAN, stage.images.take(rows), protocol, crop=crop)
    now = measure(task, {}, batcher, lambda _: None)
    difference = np.abs(now.label_confidence - before.label_confidence[rows])
    if (difference > _CONFIDENCE).any():
        image = now.images[difference.argmax()]
        raise InputError(
            f"{run.folder}: model {setting.model.name} no longer says what it said of {image} when the run began; "
            "choose another --out or --name"
        )


def check_chance(setting: Setting, run: Run, stage: int) -> None:
    """Refuse to go on with a model that is not better than chance on clean images, unless that was allowed."""
    if setting.allow_chance:
        return
    clean = join([run.part(CLEAN, number) for number in range(stage + 1)])
    found = chance_of(clean, outputs=setting.outputs)
    if found.near:
        raise NearChanceError(
            f"model {setting.model.name}: {found}. {LOOK_AT}. To measure it all the same: --anyway, or "
            f"allow_chance=True. The clean records are kept in {run.folder}"
        )


def _same_classes(name: str, stage: Stage) -> Images:
    """The clean images of a natural set's classes, labelled as it labels them; none is decoded again."""
    part = same_classes(name, stage.source)
    place = {image: row for row, image in enumerate(stage.images.names)}
    images = stage.images.take([place[image] for image in part.names])
    return replace(images, labels=part.labels, groups=part.groups, classes=part.classes)
