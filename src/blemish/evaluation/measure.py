"""The one place where a model sees pixels. Everything else makes plans before it, and reads records after it."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError
from blemish.core.types import Square
from blemish.data.cache import load
from blemish.data.images import Images
from blemish.data.stored import StoredSet
from blemish.evaluation.feed import Feed
from blemish.evaluation.info import RecordsHeader
from blemish.evaluation.pixels import as_stored, centre, compared_with, frame_probabilities, ranks_of, zipf_distance
from blemish.evaluation.plan import STORED, Part, Plan, Reopened
from blemish.evaluation.predict import Batcher, Columns, Grouping, fetched, join_columns, rank
from blemish.evaluation.prefixes import Prefixes
from blemish.evaluation.records import Records
from blemish.evaluation.task import ask
from blemish.models.base import Classifier
from blemish.models.portable import Portable
from blemish.models.speed import fill_batches, slowly
from blemish.ops.transfer import to_device

# Sets of images that a worker keeps: of its own part, and of one that it has taken over from another worker.
_KEPT = 2


def measure(plan: Plan) -> Iterator[tuple[Condition, Records]]:
    """Show the images of a plan to its model, condition by condition; the records are in the order of the images."""
    return Measurer(plan).measure(plan.conditions)


def probabilities(plan: Plan) -> Iterator[tuple[Condition, Tensor]]:
    """What a model gives all of its classes, (images, classes) on the CPU, condition by condition; no sequences.

    For a few images of one shape that people look at: of most, the columns of records are enough.
    """
    measurer = Measurer(plan)
    for condition in plan.conditions:
        yield condition, measurer.probabilities(condition)


def classify(model: Classifier, batches: Iterable[Tensor]) -> NDArray[np.int64]:
    """The classes of values that are no images of a source, such as noisy points: (B, C, H, W) from 0 to 255 each."""
    answers = []
    for batch in batches:
        probabilities = model(batch)
        if not bool(probabilities.isfinite().all()):  # on a GPU, a model looks at its first batch only
            raise InputError(f"model {model.name}: scores that are not numbers; expected finite ones")
        answers.append(probabilities.argmax(1).cpu())
    return torch.cat(answers).numpy()


def count_outputs(model: Classifier, images: Tensor) -> int:
    """How many classes a model tells apart, without those that are skipped; found out with the first of some images."""
    plain, seen = slowly(model), list[int]()

    def forward(values: Tensor) -> Tensor:
        scores = plain.forward(values)
        if isinstance(scores, Tensor) and scores.ndim == 2:
            seen.append(scores.shape[1] - plain.skip_classes)
        return scores

    # A copy, because the first batch that a model on a GPU is shown is looked at more closely than later ones.
    once = dataclasses.replace(plain, forward=forward)
    try:
        # Twice, because some models drop the axis of a single image.
        list(Batcher(2).map(lambda rows: once(images[rows]), [0, 0]))
    except InputError:
        # What is odd about one image alone need not be odd about many, and is found again if it is.
        if not seen or seen[0] < 1:
            raise
    except Exception as error:  # a model may raise anything
        raise InputError(f"model {model.name} fails at the first image ({type(error).__name__}: {error})") from error
    return seen[0]


class Measurer:
    """A plan that is being carried out: its model is open, and the images of its last parts are at hand."""

    def __init__(self, plan: Plan, device: torch.device | None = None) -> None:
        if plan.stored is None:
            for condition in plan.conditions:
                condition.check_files()
        self.plan = plan
        model = plan.model
        self.model: Classifier = model.open(device or torch.device("cpu")) if isinstance(model, Portable) else model
        # As many as the fullest batch has, whoever measures it: see `fill_batches`.
        most = max(len(rows) for images in plan.images.values() for rows in images.images.by_shape())
        fill_batches(self.model, min(plan.batch_size, most))
        stored = plan.stored
        self.stored = stored if stored is None or isinstance(stored, StoredSet) else stored()
        self.batcher = Batcher(plan.batch_size)
        self.conditions = {str(condition): condition for condition in plan.conditions}
        self._kept: OrderedDict[tuple[str, int, int | None], Images] = OrderedDict()
        # Mapped once: a GPU keeps pixels for as long as the array that they came from lives.
        self._whole: dict[str, Images] = {}
        self._prefixes = Prefixes(plan.conditions)
        self._groupings: dict[tuple[tuple[int, ...], ...] | None, Grouping] = {}

    def measure(self, conditions: Sequence[Condition]) -> Iterator[tuple[Condition, Records]]:
        """The records of conditions; a GPU begins with the next one before those of the last have arrived."""
        before: tuple[Condition, Callable[[], Records]] | None = None
        self._prefixes = Prefixes(conditions)
        for condition in conditions:
            part = Part(str(condition), fingerprint=self.plan.images_of(condition).fingerprint)
            header = RecordsHeader(str(condition), task=None if self.plan.task is None else self.plan.task.info)
            records = self.queue(condition, self.images_of(condition, part), header)
            if before is not None:
                yield before[0], before[1]()
            before = condition, records
        if before is not None:
            yield before[0], before[1]()

    def probabilities(self, condition: Condition) -> Tensor:
        """What the model gives all of its classes for the images of a condition, in their order."""
        images = self.images_of(condition, Part(str(condition)))
        self._prefixes.begin(condition, images)
        [rows] = images.by_shape()
        with Feed(images, rows, self.model.device) as feed:
            batches = self.batcher.map(
                lambda part: self.model(self.pixels(condition, images, feed.batch(part), part, self.plan.crop)), rows
            )
            return torch.cat([answers for _, answers in batches]).cpu()

    def images_of(self, condition: Condition, part: Part) -> Images:
        """The images of a part, read if need be."""
        name = self.plan.set_of(condition)
        if name == STORED:
            assert self.stored is not None
            # Stored images have their size already, and are needed once: no cache is worth their space on the disk.
            return load(self.stored.source(str(condition), like=self.plan.images_of(condition)))
        key = (name, part.first, part.last)
        if key not in self._kept:
            while len(self._kept) >= _KEPT:
                self._kept.popitem(last=False)
            self._kept[key] = self._read(condition, part)
        self._kept.move_to_end(key)
        return self._kept[key]

    def _read(self, condition: Condition, part: Part) -> Images:
        name = self.plan.set_of(condition)
        images, pixels = self.plan.images[name].images, self.plan.images[name].pixels
        if part.last is None and pixels is None:
            return images
        rows = range(len(images))
        if part.last is not None:
            batches = self.plan.batches_of(condition)[part.first : part.last]
            rows = [row for batch in batches for row in batch]  # type: ignore[assignment]
        if isinstance(pixels, Reopened):
            decoded = pixels.read(images, rows)
            if decoded.fingerprint != part.fingerprint:
                raise InputError(f"{images.name}: a worker sees other images than this run; expected the same files")
            return decoded
        if name not in self._whole:
            self._whole[name] = images if pixels is None else pixels.read(images)
        whole = self._whole[name]
        return whole if part.last is None else whole.take(rows)

    def queue(
        self, condition: Condition, images: Images, header: RecordsHeader, tell: Callable[[int], None] = lambda _: None
    ) -> Callable[[], Any]:
        """Give all work on a condition to the device; calling the result, in any thread, waits for the records.

        ``tell`` is told how many images were classified, now and then.
        """
        if self.plan.task is not None:
            return ask(self, condition, images, header, tell)
        done = 0
        if self.is_stored(condition):
            condition, crop = CLEAN, None
        else:
            crop = None if str(condition.other).startswith("natural:") else self.plan.crop
        self.begin(condition, images)
        order: list[int] = []
        frames: list[int] = []
        parts: list[Columns] = []
        distances: list[Tensor] = []
        for shape_rows in images.by_shape():
            with Feed(images, shape_rows, self.model.device) as feed:

                def work(rows: list[int], feed: Feed = feed) -> list[tuple[Columns, Tensor | None]]:
                    return list(self._answers(condition, images, feed.batch(rows), rows, crop))

                for rows, answers in self.batcher.map(work, shape_rows):
                    for frame, (columns, distance) in enumerate(answers):
                        order += rows
                        frames += [frame] * len(rows)
                        parts.append(columns)
                        distances += [] if distance is None else [distance]
                    done += len(rows) * len(answers)
                    tell(done)
        columns_of, distances_of = join_columns(parts), fetched(distances) if distances else None

        def finish() -> Records:
            more = {"frames": np.array(frames, dtype=np.int16)} if condition.is_sequence else {}
            if distances_of is not None:
                more["zipf"] = distances_of().numpy()
            return _records(images, header, np.array(order), columns_of(), **more)

        return finish

    def _answers(
        self, condition: Condition, images: Images, pixels: Tensor, rows: list[int], crop: int | Square | None
    ) -> Iterator[tuple[Columns, Tensor | None]]:
        """What is kept of a batch, frame by frame (there is one, but of sequences); and the distances between frames.

        A frame's distance is that from the frame it is compared with, where distances are asked for.
        """
        labels = to_device(torch.from_numpy(images.labels[rows]), self.model.device)
        top, grouping = int(images.labels.max()), self._grouping(images)
        if not condition.is_sequence:
            scores = self.model(self.pixels(condition, images, pixels, rows, crop))
            yield rank(grouping(scores), labels, top), None
            return
        ids = torch.from_numpy(images.ids[rows])
        protocol, size = self.plan.protocol, self.batcher.size
        ranks: list[Tensor] = []
        for output in frame_probabilities(self.model, condition, pixels, ids, protocol, crop, size):
            probabilities = grouping(output)
            distance = None
            if self.plan.zipf:
                ranks.append(ranks_of(probabilities))
                against = compared_with(condition, len(ranks) - 1)
                unknown = torch.full((len(rows),), torch.nan, device=probabilities.device)
                distance = unknown if against is None else zipf_distance(ranks[against], ranks[-1])
            yield rank(probabilities, labels, top), distance

    def _grouping(self, images: Images) -> Grouping:
        """How the model's classes become those of the images; the protocol says so, or else the largest counts."""
        if images.groups not in self._groupings:  # kept, since a GPU would wait for its tables in every batch
            self._groupings[images.groups] = Grouping(images.groups, self.plan.protocol.pool or "max")
        return self._groupings[images.groups]

    def is_stored(self, condition: Condition) -> bool:
        """Whether its images lie on the disk as they are."""
        return self.plan.set_of(condition) == STORED

    def begin(self, condition: Condition, images: Images) -> None:
        """Say which condition of which images comes next; see `Prefixes`."""
        self._prefixes.begin(condition, images)

    def pixels(
        self, condition: Condition, images: Images, pixels: Tensor, rows: list[int], crop: int | Square | None
    ) -> Tensor:
        """What the model is shown: a batch that is cut, corrupted and stored as the protocol says."""
        if crop is not None:
            pixels = centre(pixels, crop)
        protocol = self.plan.protocol
        if not condition.steps:
            return as_stored(pixels, protocol.storage) if self.plan.store_clean else pixels
        ids = torch.from_numpy(images.ids[rows])

        def apply(steps: Condition, images: Tensor) -> Tensor:
            return steps.apply(images, seed=protocol.seed, ids=ids, preset=protocol.preset)

        return as_stored(self._prefixes.applied(condition, rows, apply, pixels), protocol.storage)


def _records(images: Images, header: RecordsHeader, order: NDArray[np.int64], columns: Columns, **more: Any) -> Records:
    """Records in the order of the images, whatever the order in which they were classified."""
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
