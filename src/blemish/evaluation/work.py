"""The images of a condition on their way through a model: corrupted, stored, ranked; or as the frames of a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.data.cache import Images
from blemish.evaluation.feed import Feed
from blemish.evaluation.predict import Batcher, Columns, Grouping, fetched, join_columns, rank
from blemish.evaluation.records import Records
from blemish.models.base import Classifier
from blemish.ops.jpeg import jpeg_round_trip
from blemish.ops.transfer import to_device

__all__ = ["Progress", "Task", "centre", "measure", "queue"]

Progress = Callable[[int], None]
"""Told, now and then, how many further images were classified."""

_JPEG_QUALITY = 85.0


@dataclass(frozen=True)
class Task:
    """One model under one condition on one set of images. ``crop`` is still to be cut, as it is beside sequences."""

    model: Classifier
    condition: Condition
    images: Images
    protocol: Protocol
    crop: int | None = None
    zipf: bool = False


def measure(task: Task, header: dict[str, Any], batcher: Batcher, progress: Progress) -> Records:
    """The records of a task, in the order of its images."""
    return queue(task, header, batcher, progress)()


def queue(task: Task, header: dict[str, Any], batcher: Batcher, progress: Progress) -> Callable[[], Records]:
    """Give all of a task's work to the device; calling the result, in any thread, waits for the records.

    A GPU is thus kept busy with the next task while the host deals with the results of the last.
    """
    if task.condition.is_sequence:
        return _queue_frames(task, header, batcher, progress)
    top = int(task.images.labels.max())
    grouping = Grouping(task.images.groups)
    order: list[int] = []
    parts: list[Columns] = []
    for shape_rows in task.images.by_shape():
        with Feed(task.images, shape_rows, task.model.device) as feed:

            def work(rows: list[int], feed: Feed = feed) -> Columns:
                scores = grouping(task.model(_pixels(task, feed.batch(rows), rows)))
                return rank(scores, _labels(task, rows), top)

            for rows, columns in batcher.map(work, shape_rows):
                order += rows
                parts.append(columns)
                progress(len(rows))
    columns_of = join_columns(parts)
    return lambda: _records(task, header, np.array(order), columns_of())


def _labels(task: Task, rows: list[int]) -> Tensor:
    return to_device(torch.from_numpy(task.images.labels[rows]), task.model.device)


def _pixels(task: Task, images: Tensor, rows: list[int]) -> Tensor:
    if task.crop is not None:
        images = centre(images, task.crop)
    condition, protocol = task.condition, task.protocol
    if not condition.steps:
        return images
    ids = torch.from_numpy(task.images.ids[rows])
    corrupted = condition.apply(images, seed=protocol.seed, ids=ids, preset=protocol.preset)
    return _stored(corrupted, protocol)


def _stored(images: Tensor, protocol: Protocol) -> Tensor:
    if protocol.storage == "raw":
        return images
    return jpeg_round_trip(images, torch.full((len(images),), _JPEG_QUALITY, dtype=torch.float64))


def centre(images: Tensor, side: int) -> Tensor:
    """The centre square, placed as torchvision's CenterCrop does."""
    height, width = images.shape[-2:]
    if side > min(height, width):
        raise InputError(f"images of {height}×{width} pixels are too small for a crop of {side}×{side}")
    top, left = round((height - side) / 2), round((width - side) / 2)
    return images[..., top : top + side, left : left + side]


def _records(task: Task, header: dict[str, Any], order: NDArray[np.int64], columns: Columns, **more: Any) -> Records:
    """Records in the order of the images, whatever the order in which they were classified."""
    images = task.images
    records = Records(
        header=header,
        images=np.asarray(images.names, dtype=np.str_)[order],
        labels=images.labels[order].astype(np.int32),
        top5=columns.top5.numpy(),
        confidence=columns.confidence.numpy(),
        label_confidence=columns.label_confidence.numpy(),
        **more,
    )
    frames = more.get("frames")
    return records.take(np.argsort(order, kind="stable") if frames is None else np.lexsort((frames, order)))


def _queue_frames(task: Task, header: dict[str, Any], batcher: Batcher, progress: Progress) -> Callable[[], Records]:
    order: list[int] = []
    numbers: list[int] = []
    parts: list[Columns] = []
    distances: list[Tensor] = []
    for shape_rows in task.images.by_shape():
        with Feed(task.images, shape_rows, task.model.device) as feed:

            def work(rows: list[int], feed: Feed = feed) -> list[tuple[Columns, Tensor]]:
                return _film(task, feed.batch(rows), rows, batcher.size)

            for rows, film in batcher.map(work, shape_rows):
                for index, (columns, distance) in enumerate(film):
                    order += rows
                    numbers += [index] * len(rows)
                    parts.append(columns)
                    distances.append(distance)
                progress(len(rows) * len(film))
    columns_of, distances_of = join_columns(parts), fetched(distances)

    def finish() -> Records:
        more: dict[str, Any] = {"frames": np.array(numbers, dtype=np.int16)}
        if task.zipf:
            more["zipf"] = distances_of().numpy()
        return _records(task, header, np.array(order), columns_of(), **more)

    return finish


def _film(task: Task, images: Tensor, rows: list[int], size: int) -> list[tuple[Columns, Tensor]]:
    """For each frame of some images, what is kept of it, and its distance from the frame it is compared with."""
    labels = _labels(task, rows)
    top = int(task.images.labels.max())
    grouping = Grouping(task.images.groups)
    film = []
    ranks: list[Tensor] = []
    for probabilities in _frame_probabilities(task, images, rows, size):
        probabilities = grouping(probabilities)
        distance = torch.full((len(rows),), torch.nan, device=probabilities.device)
        if task.zipf:
            ranks.append(_ranks(probabilities))
            against = _compared_with(task, len(ranks) - 1)
            if against is not None:
                distance = _zipf(ranks[against], ranks[-1])
        film.append((rank(probabilities, labels, top), distance))
    return film


def _frame_probabilities(task: Task, images: Tensor, rows: list[int], size: int) -> Iterator[Tensor]:
    """The model's output for each frame; frames of few images are classified together."""
    protocol, condition = task.protocol, task.condition
    preset = protocol.preset if protocol.preset in condition.sequence().presets else None
    frames = condition.sequence().frames(
        images,
        seed=protocol.seed,
        ids=torch.from_numpy(task.images.ids[rows]),
        difficulty=int(condition.steps[0].low),
        preset=preset,
        crop=task.crop,
    )
    waiting: list[Tensor] = []
    together = max(1, size // len(rows))
    for frame in frames:
        waiting.append(_stored(frame, protocol))
        if len(waiting) == together:
            yield from torch.split(task.model(torch.cat(waiting)), len(rows))
            waiting = []
    if waiting:
        yield from torch.split(task.model(torch.cat(waiting)), len(rows))


def _compared_with(task: Task, index: int) -> int | None:
    """The frame that a frame is compared with: the first in a noise sequence, else the one before on its stride."""
    step = index if task.condition.sequence().noise else int(task.condition.steps[0].low)
    return index - step if index >= step > 0 else None


def _ranks(probabilities: Tensor) -> Tensor:
    order = torch.sort(probabilities, dim=1, descending=True, stable=True).indices
    places = torch.arange(1, order.shape[1] + 1, device=order.device, dtype=torch.float32).expand_as(order)
    return torch.empty_like(places).scatter_(1, order, places)


def _zipf(first: Tensor, second: Tensor) -> Tensor:
    """Σ |1/r₁ − 1/r₂| / r₁ over all classes, as the evaluator of ImageNet-P prints it."""
    return ((1 / first - 1 / second).abs() / first).sum(1)
