"""What is to be measured: a model, conditions and images. A plan travels to workers; a part is what one does at a time.

Batches are those of a run without workers, in its order, so that records are the same bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.types import Square
from blemish.data.cache import load
from blemish.data.images import Images
from blemish.data.source import Source
from blemish.data.stored import StoredSet
from blemish.evaluation.info import RecordsHeader, RunInfo
from blemish.evaluation.task import Task
from blemish.models.base import Classifier
from blemish.models.portable import Portable

STORED = "stored"
"""The name of the images on disk, of conditions that are not made here; a worker reads them itself."""

# Values of a batch. On a CPU the activations of larger batches are given back to the system and zeroed by it again at
# every layer.
_CPU_VALUES = 2**20
_GPU_VALUES = 2**26


@dataclass(frozen=True)
class Mapped:
    """Pixels in a file of this machine, which all workers map: they are in memory once."""

    path: Path
    size: int

    def read(self, images: Images) -> Images:
        """The images with their pixels."""
        return replace(images, pixels=np.memmap(self.path, dtype=np.uint8, mode="r", shape=(self.size,)))


@dataclass(frozen=True)
class Reopened:
    """Images that a worker on another machine opens and decodes itself, those of its parts only."""

    reopen: Callable[[], Source]
    resize: int | None
    crop: int | Square | None

    def read(self, images: Images, rows: Sequence[int]) -> Images:
        """Some of the images, decoded here."""
        index = np.asarray(rows, dtype=np.int64)
        source = replace(
            self.reopen().take(index),
            name=images.name,
            names=tuple(images.names[row] for row in rows),
            ids=images.ids[index],
            labels=images.labels[index],
            classes=images.classes,
            groups=images.groups,
        )
        return load(source, resize=self.resize, crop=self.crop)


@dataclass(frozen=True)
class ImageSet:
    """Images that conditions ask for; ``images`` is without pixels where ``pixels`` says how to get at them."""

    images: Images
    pixels: Mapped | Reopened | None = None


@dataclass(frozen=True)
class Part:
    """Batches ``first`` to ``last`` (exclusive) of a condition; all of it where ``last`` is None.

    ``share`` numbers the shares into which workers divide the images. ``fingerprint`` is that of its images, for
    workers that read them anew.
    """

    condition: str
    first: int = 0
    last: int | None = None
    share: int = 0
    fingerprint: str | None = None

    def __str__(self) -> str:
        return self.condition if self.last is None else f"{self.condition} (batches {self.first} … {self.last - 1})"


@dataclass(frozen=True)
class Plan:
    """Everything that decides what a model says, and all that a worker needs.

    ``images`` has a set by the name "", and those of conditions that ask for another one. ``crop`` is still to be cut,
    after the frames of sequences are made. With ``store_clean``, clean images are stored as the protocol says, too; in
    the published benchmarks only corrupted ones are. ``info`` is the run file, from which the headers of records take
    what concerns their condition in a ``stage``. ``task`` is what the model is asked, where that is not the class of an
    image.
    """

    model: Classifier | Portable
    conditions: tuple[Condition, ...]
    images: Mapping[str, ImageSet]
    protocol: Protocol
    batch_size: int
    crop: int | Square | None = None
    zipf: bool = False
    store_clean: bool = False
    stored: StoredSet | Callable[[], StoredSet] | None = None
    info: RunInfo | None = None
    stage: int = 0
    task: Task | None = None

    def set_of(self, condition: Condition) -> str:
        """Which images a condition asks for: those of the run, of another set, of its classes, or stored ones."""
        if condition.other is not None:
            return condition.other
        return STORED if self.stored is not None and condition.steps else ""

    def images_of(self, condition: Condition) -> Images:
        """The images of a condition, maybe without their pixels; for stored ones, those that they are copies of."""
        name = self.set_of(condition)
        return self.images["" if name == STORED else name].images

    def batches_of(self, condition: Condition) -> list[list[int]]:
        """The rows of all batches of a condition, in the order in which they are measured."""
        return batches_of(self.images_of(condition), self.batch_size)

    def header_of(self, condition: Condition, fingerprint: str) -> RecordsHeader:
        """The header of a condition's records."""
        zipf = self.zipf and condition.is_sequence and self.set_of(condition) != STORED
        made = (
            RecordsHeader(task=self.task.info if self.task else None)
            if self.info is None
            else self.info.header(self.stage, condition)
        )
        return replace(made, condition=str(condition), pixels=fingerprint, zipf=zipf)


def plan_for(
    model: Classifier,
    images: Images,
    conditions: Sequence[Condition] = (CLEAN,),
    *,
    protocol: Protocol | None = None,
    batch_size: int | None = None,
    crop: int | Square | None = None,
    task: Task | None = None,
) -> Plan:
    """The plan of a study: some images under some conditions, in this process."""
    return Plan(
        model,
        tuple(conditions),
        {"": ImageSet(images)},
        protocol or Protocol(),
        batch_size or fitting_batch_size(images, model.device),
        crop,
        task=task,
    )


def batches_of(images: Images, size: int) -> list[list[int]]:
    """All batches, in the order in which they are measured."""
    return [rows[start : start + size] for rows in images.by_shape() for start in range(0, len(rows), size)]


def fitting_batch_size(images: Images, device: torch.device) -> int:
    """A size with which a CPU's caches, or a GPU, are well used; results do not depend on it."""
    most = most_in_batch(int(images.shapes[0].prod()), device)
    return most if device.type == "cpu" else even_batch_size(most, max(map(len, images.by_shape())))


def most_in_batch(values: int, device: torch.device) -> int:
    """How many images of so many values make a batch that is large enough."""
    return max(1, (_CPU_VALUES if device.type == "cpu" else _GPU_VALUES) // values)


def even_batch_size(most: int, count: int) -> int:
    """At most ``most`` images in a batch, as many in each: to a compiled model, a short last batch is a full one.

    >>> even_batch_size(445, 6250), even_batch_size(445, 50_000), even_batch_size(445, 100)
    (417, 443, 100)
    """
    return math.ceil(count / math.ceil(count / most))
