"""The unit of evaluation, a shard of a condition: some whole batches, measured by a worker that holds the model.

Batches are those of a run without workers, in its order, so that records are the same bit for bit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError
from blemish.data.cache import Images, load
from blemish.data.source import Source
from blemish.data.stored import StoredSet
from blemish.evaluation.executors.base import PendingResult, Tell, wait_for
from blemish.evaluation.header import differences, made_with
from blemish.evaluation.predict import Batcher
from blemish.evaluation.records import records_bytes
from blemish.evaluation.work import Task, queue
from blemish.models.base import Classifier
from blemish.models.portable import Portable
from blemish.models.speed import compile_seconds, fill_batches

__all__ = ["STORED", "Compiled", "Mapped", "Outputs", "Reopened", "Shard", "ShardJob", "View", "batches_of"]

STORED = "stored"
"""The view of conditions whose images are on disk; a worker reads them itself."""

# Images that a worker keeps: of its own shard, and of one that it has taken over from another worker.
_KEPT = 2


@dataclass(frozen=True)
class Shard:
    """Batches ``first`` to ``last`` (exclusive) of a condition; all of it where ``last`` is None.

    ``place`` numbers the parts of the images that workers share out. ``mark`` is the fingerprint of its images, for
    workers that read them anew.
    """

    condition: str
    view: str
    first: int = 0
    last: int | None = None
    place: int = 0
    mark: str | None = None

    def __str__(self) -> str:
        return self.condition if self.last is None else f"{self.condition} (batches {self.first} … {self.last - 1})"


@dataclass(frozen=True)
class Compiled:
    """Told by a worker with a compiled model: how long compiling took so far."""

    seconds: float


@dataclass(frozen=True)
class Outputs:
    """Told by a worker: how many outputs its model has, which has to be the same for all workers."""

    count: int


@dataclass(frozen=True)
class Mapped:
    """Pixels in a file of this machine, which all workers map: they are in memory once."""

    path: Path
    size: int

    def whole(self, images: Images) -> Images:
        """The images with their pixels."""
        return replace(images, pixels=np.memmap(self.path, dtype=np.uint8, mode="r", shape=(self.size,)))


@dataclass(frozen=True)
class Reopened:
    """Images that a worker on another machine opens and decodes itself, those of its shards only."""

    reopen: Callable[[], Source]
    resize: int | None
    crop: int | None

    def part(self, images: Images, rows: list[int]) -> Images:
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
class View:
    """Images that conditions ask for; ``images`` is without pixels where ``pixels`` says how to get at them."""

    images: Images
    pixels: Mapped | Reopened | None = None


def batches_of(images: Images, size: int) -> list[list[int]]:
    """All batches, in the order in which they are measured."""
    return [rows[start : start + size] for rows in images.by_shape() for start in range(0, len(rows), size)]


@dataclass(frozen=True)
class ShardJob:
    """What a worker needs for any condition of a stage. ``header`` is what the headers of all records share.

    ``conditions``, by their texts, carry their corruptions, which may be a user's own.
    """

    conditions: Mapping[str, Condition]
    model: Classifier | Portable
    protocol: Protocol
    size: int
    views: Mapping[str, View]
    header: Mapping[str, Any]
    stored: StoredSet | Callable[[], StoredSet] | None = None
    crop: int | None = None
    zipf: bool = False

    def open(self, device: torch.device | None) -> Callable[[Shard, Tell], bytes]:
        """Open the model on the device; other versions of the libraries than the coordinator's are refused."""
        different = differences(self.header["made_with"], made_with())
        if different:
            raise InputError(f"a worker differs from the coordinator: {'; '.join(different)}; expected the same")
        if self.stored is None:
            for condition in self.conditions.values():
                condition.check_files()
        model = self.model
        if isinstance(model, Portable):
            model = model.open(device or torch.device("cpu"))
        # As many as the fullest batch has, whoever measures it: see `fill_batches`.
        most = max(len(rows) for view in self.views.values() for rows in view.images.by_shape())
        fill_batches(model, min(self.size, most))
        stored = self.stored if self.stored is None or isinstance(self.stored, StoredSet) else self.stored()
        # What comes later comes as bytes in the end.
        return cast(Callable[[Shard, Tell], bytes], WorkerState(self, model, stored, Batcher(self.size)).measure)

    def task_header(self, condition: str, pixels: str) -> dict[str, Any]:
        """The header of a condition's records."""
        zipf = self.zipf and self.conditions[condition].is_sequence
        return {**self.header, "condition": condition, "pixels": pixels, "zipf": zipf}


@dataclass
class WorkerState:
    """A worker at work: its model, and the images of its last shards."""

    job: ShardJob
    model: Classifier
    stored: StoredSet | None
    batcher: Batcher
    kept: OrderedDict[tuple[str, int, int | None], Images] = field(default_factory=OrderedDict)
    batches: dict[str, list[list[int]]] = field(default_factory=dict)
    # Mapped once: a GPU keeps pixels for as long as the array that they came from lives.
    whole: dict[str, Images] = field(default_factory=dict)
    compiling: float | None = None

    def measure(self, shard: Shard, tell: Tell) -> bytes | PendingResult:
        """The file of records of a shard; a GPU begins with the next shard before the host has written it."""
        done = 0

        def advance(count: int) -> None:
            nonlocal done
            done += count
            tell(done)

        tell(0)
        task = self._task(shard)
        mark = self.job.views[shard.view].images.fingerprint if shard.view != STORED else task.images.fingerprint
        header = {**self.job.task_header(shard.condition, mark), "zipf": task.zipf}
        if shard.last is not None:
            header["part"] = [self.job.size, shard.first, shard.last]
        records = queue(task, header, self.batcher, advance)
        if (seconds := compile_seconds(self.model)) not in (None, self.compiling):
            self.compiling = seconds
            tell(Compiled(seconds or 0.0))
        if (outputs := self.model.outputs_seen) is not None:
            tell(Outputs(outputs))
        later = PendingResult(lambda: records_bytes(records()))
        return later if self.model.device.type == "cuda" else wait_for(later)

    def _task(self, shard: Shard) -> Task:
        job, condition = self.job, self.job.conditions[shard.condition]
        if shard.view == STORED:
            assert self.stored is not None
            like = self.job.views[""].images
            # Stored images have their size already, and are needed once: no cache is worth their place on the disk.
            return Task(self.model, CLEAN, load(self.stored.source(shard.condition, like=like)), job.protocol)
        natural = shard.view.startswith("natural:")
        zipf = job.zipf and condition.is_sequence
        crop = None if natural else job.crop
        return Task(self.model, condition, self._images(shard), job.protocol, crop=crop, zipf=zipf)

    def _images(self, shard: Shard) -> Images:
        key = (shard.view, shard.first, shard.last)
        if key not in self.kept:
            while len(self.kept) >= _KEPT:
                self.kept.popitem(last=False)
            self.kept[key] = self._read(shard)
        self.kept.move_to_end(key)
        return self.kept[key]

    def _read(self, shard: Shard) -> Images:
        view = self.job.views[shard.view]
        if shard.last is None and view.pixels is None:
            return view.images
        rows = self._rows(shard)
        if isinstance(view.pixels, Reopened):
            found = view.pixels.part(view.images, rows)
            if found.fingerprint != shard.mark:
                raise InputError(
                    f"{view.images.name}: a worker sees other images than this run; expected the same files"
                )
            return found
        if shard.view not in self.whole:
            self.whole[shard.view] = view.images if view.pixels is None else view.pixels.whole(view.images)
        whole = self.whole[shard.view]
        return whole if shard.last is None else whole.take(rows)

    def _rows(self, shard: Shard) -> list[int]:
        images = self.job.views[shard.view].images
        if shard.last is None:
            return list(range(len(images)))
        batches = self.batches.setdefault(shard.view, batches_of(images, self.job.size))
        return [row for batch in batches[shard.first : shard.last] for row in batch]
