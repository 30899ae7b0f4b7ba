"""The images of a course, made in large pieces on the device: one call for each condition of a piece, not of a batch.

Pixels are those of the benchmark: a pure function of its seed, the image's id and the condition, whatever the setting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.data.images import Images
from blemish.evaluation.pixels import as_stored
from blemish.studies.arena.course import Course
from blemish.studies.streams.stream import Stream

_ROOM = {"cpu": 2**25, "cuda": 2**28}
"""Bytes of images that are made together; more would not be made faster."""

_KEPT = {"cpu": 2**29, "cuda": 2**32}
"""Bytes of images that are kept, for the next method on the same stream."""


class MadeImages(ABC):
    """The images of a stream by their positions, as uint8 (B, C, H, W) on the device, made in pieces.

    All pieces are kept where there is room for them, else the last one.
    """

    def __init__(self, length: int, values: int, device: torch.device) -> None:
        self.length, self.device = length, device
        self.size = max(1, _ROOM.get(device.type, _ROOM["cpu"]) // values)
        self._keeps_all = length * values <= _KEPT.get(device.type, _KEPT["cpu"])
        self._pieces: dict[int, Tensor] = {}

    @abstractmethod
    def make(self, start: int, stop: int) -> Tensor:
        """Make those at positions start … stop − 1."""

    def between(self, start: int, stop: int) -> Tensor:
        """Those at positions start … stop − 1."""
        parts = []
        while start < stop:
            number, within = divmod(start, self.size)
            end = min(stop, (number + 1) * self.size)
            if number not in self._pieces:
                if not self._keeps_all:
                    self._pieces.clear()  # before the next one is made
                self._pieces[number] = self.make(number * self.size, min((number + 1) * self.size, self.length))
            parts.append(self._pieces[number][within : within + end - start])
            start = end
        return parts[0] if len(parts) == 1 else torch.cat(parts)


def clean_images(images: Images, device: torch.device) -> Tensor:
    """All images of a set on the device; they have one shape."""
    if len(images.by_shape()) > 1:
        raise InputError(f"{images.name}: images of several sizes; expected one size: give resize and crop")
    return images.batch(range(len(images))).to(device)


class CorruptedImages(MadeImages):
    """Those of a course. ``clean`` may be on the CPU or the device; pieces go to the device before they are made."""

    def __init__(
        self,
        course: Course,
        clean: Tensor,
        ids: Tensor,
        conditions: Mapping[str, Condition],
        protocol: Protocol,
        device: torch.device,
    ) -> None:
        super().__init__(len(course), clean[0].numel(), device)
        self.course, self.clean, self.ids, self.protocol = course, clean, ids, protocol
        self.conditions = [conditions[name] for name in course.conditions]

    def make(self, start: int, stop: int) -> Tensor:
        """Make a piece, one condition after the other."""
        rows = torch.from_numpy(self.course.rows[start:stop])
        numbers = self.course.condition[start:stop]
        made = torch.empty((stop - start, *self.clean.shape[1:]), dtype=torch.uint8, device=self.device)
        for number in np.unique(numbers).tolist():
            places = torch.from_numpy(np.flatnonzero(numbers == number))
            chosen = rows[places]
            clean = self.clean[chosen.to(self.clean.device)].to(self.device)
            seed, preset = self.protocol.seed, self.protocol.preset
            images = self.conditions[number].apply(clean, seed=seed, ids=self.ids[chosen], preset=preset)
            made[places.to(self.device)] = as_stored(images, self.protocol.storage)
        return made


class WalkImages(MadeImages):
    """Those of a stream over a walk."""

    def __init__(self, stream: Stream, device: torch.device) -> None:
        super().__init__(int(stream.length), int(np.prod(stream.images.shape)), device)
        self.stream = stream

    def make(self, start: int, stop: int) -> Tensor:
        """Make a piece, one step of the walk after the other."""
        return self.stream.at(start, stop - start).images
