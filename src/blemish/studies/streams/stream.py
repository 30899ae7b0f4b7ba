"""Streams: the images of a walk, corrupted when they are asked for.

Image ``t`` of a stream is a pure function of the image set, the walk, the seed and ``t``. Batches, workers, machines
and interruptions cannot change it.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.plugins import own_code
from blemish.ops.jpeg import jpeg_round_trip
from blemish.studies.streams.images import ImageSet, image_list
from blemish.studies.streams.info import StreamInfo
from blemish.studies.streams.walks import Walk, WalkStep

JPEG_QUALITY = 85
"""The quality of the release's pictures."""


class Batch(NamedTuple):
    """Corrupted images (B, C, H, W) as uint8, with their labels, their rows in the image set, their positions in the
    stream, and the numbers of the walk's steps they belong to."""

    images: Tensor
    labels: Tensor
    rows: Tensor
    positions: Tensor
    steps: Tensor


def corrupt_step(
    images: Tensor, step: WalkStep, *, seed: int, ids: Tensor, preset: str | None = None, catalog: Catalog = catalog
) -> Tensor:
    """A uint8 batch under the two corruptions of a step, quantised in between; severity 0 is left out."""
    for name, severity in ((step.first, step.first_severity), (step.second, step.second_severity)):
        if severity > 0:
            images = catalog[name](images, severity=severity, seed=seed, ids=ids, preset=preset)
    return images


class Stream(IterableDataset[Batch]):
    """Batches of a walk's images; give it to a DataLoader with ``batch_size=None`` to use worker processes.

    Each step shows its images without repetition, in an order of its own, until all have been seen; then it begins
    again in another order. Random draws depend on the position, so an image that comes again has other noise.

    The stream has ``length`` images, by default those of the walk; ``math.inf`` repeats a closed walk for ever. It
    begins at image ``start``, so it can be resumed anywhere. Of ``shards`` machines, number ``shard`` gets every
    ``shards``-th batch; the workers of a DataLoader share these in turn, so batches arrive in order. With ``jpeg`` the
    images pass through JPEG of quality 85 at the end, as the release's do.
    """

    def __init__(
        self,
        images: ImageSet,
        walk: Walk,
        *,
        batch: int = 64,
        seed: int = 0,
        start: int = 0,
        length: float | None = None,
        shard: int = 0,
        shards: int = 1,
        jpeg: bool = False,
        preset: str | None = None,
        device: torch.device | str | None = None,
        catalog: Catalog = catalog,
    ) -> None:
        """Check the settings once, here, rather than in a worker."""
        self.images, self.walk, self.batch, self.seed = images, walk, batch, seed
        self.length = len(walk) if length is None else length
        self.start, self.shard, self.shards = start, shard, shards
        self.jpeg, self.preset, self.device, self.catalog = jpeg, preset, device, catalog
        if batch < 1:
            raise InputError(f"batches of {batch}; expected at least 1")
        if not (self.length > 0 and (math.isinf(self.length) or self.length == int(self.length))):
            raise InputError(f"a stream of {self.length:g} images; expected a positive whole number, or infinity")
        if self.length > len(walk) and not walk.closed:
            raise InputError(
                f"a stream of {self.length:g} images over an open walk of {len(walk)}; "
                "expected a closed walk, which can be repeated, or fewer images"
            )
        if not 0 <= start <= self.length:
            raise InputError(f"a stream that starts at image {start} of {self.length:g}; expected 0 … {self.length:g}")
        if not 0 <= shard < shards:
            raise InputError(f"shard {shard} of {shards}; expected 0 … {shards - 1}")
        for name in walk.corruptions:
            catalog[name].check_files()

    def __len__(self) -> int:
        """How many batches an iteration over this shard gives."""
        if math.isinf(self.length):
            raise TypeError("an infinite stream has no length")
        return max(0, -(-(self._batches - self.shard) // self.shards))

    @property
    def _batches(self) -> int:
        return -(-(int(self.length) - self.start) // self.batch)

    def __iter__(self) -> Iterator[Batch]:
        """The batches of this shard; in a DataLoader worker, its share of them."""
        worker = get_worker_info()
        number = self.shard + (0 if worker is None else worker.id * self.shards)
        stride = self.shards * (1 if worker is None else worker.num_workers)
        while (first := self.start + number * self.batch) < self.length:
            yield self.at(first, min(self.batch, int(min(self.length - first, self.batch))))
            number += stride

    def resumed(self, start: int) -> Stream:
        """The same stream from another image on."""
        other = copy.copy(self)
        if not 0 <= start <= self.length:
            raise InputError(f"a stream resumed at image {start} of {self.length:g}; expected 0 … {self.length:g}")
        other.start = start
        return other

    def at(self, start: int, count: int) -> Batch:
        """The images at positions start … start + count − 1."""
        parts = [self._part(*span) for span in self.walk.spans(start, start + count)]
        columns = [torch.cat(column) if len(parts) > 1 else column[0] for column in zip(*parts, strict=True)]
        return Batch(*columns)

    def shown(self, start: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which rows of the image set those at positions start … start + count − 1 are, and their steps' numbers."""
        rows, steps = [], []
        for turn, begin, end in self.walk.spans(start, start + count):
            rows.append(self._rows_between(turn, begin, end))
            steps.append(np.full(end - begin, turn % len(self.walk.steps)))
        return np.concatenate(rows), np.concatenate(steps)

    def describe(self) -> StreamInfo:
        """What decides the pixels, but for the code of our corruptions."""
        code = own_code(self.catalog[name] for name in self.walk.corruptions)
        text = self.walk.to_json().encode("utf-8", "surrogatepass")  # what a walk says of its model may be anything
        return StreamInfo(
            data=self.images.name,
            data_fingerprint=self.images.fingerprint,
            image_list=image_list(self.images.names),
            image_count=len(self.images),
            preparation=self.images.preparation,
            walk=hashlib.blake2b(text, digest_size=12).hexdigest(),
            seed=self.seed,
            jpeg=self.jpeg,
            preset=self.preset,
            frost=self.catalog.frost_kind if "frost" in self.walk.corruptions else None,
            code=code or None,
        )

    def _part(self, turn: int, start: int, end: int) -> tuple[Tensor, ...]:
        """The images of a step, whose number also counts the laps, from one position to another."""
        number = turn % len(self.walk.steps)
        step = self.walk.steps[number]
        positions = np.arange(start, end)
        rows = self._rows_between(turn, start, end)
        images = self.images.load(rows, positions, self.seed)
        if self.device is not None:
            images = images.to(self.device, non_blocking=True)
        ids = torch.from_numpy(positions)
        images = corrupt_step(images, step, seed=self.seed, ids=ids, preset=self.preset, catalog=self.catalog)
        if self.jpeg:
            images = jpeg_round_trip(images, torch.full((len(images),), JPEG_QUALITY))
        labels = torch.from_numpy(self.images.labels[rows])
        return images, labels, torch.from_numpy(rows), ids, torch.full((end - start,), number)

    def _rows_between(self, turn: int, start: int, end: int) -> NDArray[np.int64]:
        """Which images a step, whose number also counts the laps, shows from one position to another."""
        lap, number = divmod(turn, len(self.walk.steps))
        first = lap * len(self.walk) + int(self.walk.ends[number]) - self.walk.steps[number].images
        return self._rows(turn, np.arange(start, end) - first)

    def _rows(self, step: int, within: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which images a step shows, by how many it showed before."""
        rounds, ranks = np.divmod(within, len(self.images))
        rows = np.empty(len(within), dtype=np.int64)
        for turn in np.unique(rounds).tolist():
            here = rounds == turn
            rows[here] = _order(self.seed, step, turn, len(self.images))[ranks[here]]
        return rows


@lru_cache(maxsize=8)
def _order(seed: int, step: int, turn: int, count: int) -> NDArray[np.int64]:
    order: NDArray[np.int64] = (
        CounterRng(seed, torch.tensor([step]), f"ccc order {turn}").permutations("rows", count)[0].numpy()
    )
    return order
