"""Walks: a list of steps that a stream follows, from corruption to corruption, and files of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.reading import parse_json, read_text
from blemish.core.typed import as_json, read_typed
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.severity import check_severity, severity_text
from blemish.studies.streams.info import WalkInfo

FORMAT = 1


class WalkStep(NamedTuple):
    """Some images under two corruptions, the first applied first, and the accuracy that was calibrated for them."""

    first: str
    first_severity: float
    second: str
    second_severity: float
    images: int
    accuracy: float
    segment: int

    def __str__(self) -> str:
        parts = self.severities.items()
        return "+".join(f"{name}@{severity_text(severity)}" for name, severity in parts) or "clean"

    @property
    def severities(self) -> dict[str, float]:
        """The corruptions that images of the step meet, in order, and how strong they are."""
        parts = ((self.first, self.first_severity), (self.second, self.second_severity))
        return {name: severity for name, severity in parts if severity > 0}

    def jump_to(self, other: WalkStep) -> float:
        """The greatest change of a severity from this step to another."""
        here, there = self.severities, other.severities
        return max((abs(here.get(name, 0.0) - there.get(name, 0.0)) for name in {*here, *there}), default=0.0)


@dataclass(frozen=True)
class Seams:
    """How severities jump between the paths of a walk.

    ``count`` is how many seams there are, of which ``jumping`` have a jump at all; ``mean`` and ``largest`` are over
    all seams, in severities. ``closing`` is the jump from the end of a closed walk to its beginning, which counts too.
    """

    count: int
    jumping: int
    mean: float
    largest: float
    closing: float | None


@dataclass(frozen=True)
class Walk:
    """The steps of a stream. ``protocol`` says how they were chosen; ``closed`` walks end where they began."""

    steps: tuple[WalkStep, ...]
    protocol: WalkInfo
    closed: bool = False

    def __post_init__(self) -> None:
        """Refuse a walk that cannot be followed."""
        if not self.steps:
            raise InputError("a walk without steps; expected at least one")
        if any(step.images < 1 for step in self.steps):
            raise InputError("a walk with a step of no images; expected at least one image per step")

    def __len__(self) -> int:
        return int(self.ends[-1])

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """For each step, how many images have been shown when it is over."""
        return np.cumsum([step.images for step in self.steps])

    @cached_property
    def corruptions(self) -> tuple[str, ...]:
        """The corruptions that images of the walk meet."""
        return tuple(dict.fromkeys(name for step in self.steps for name in step.severities))

    @cached_property
    def seams(self) -> Seams:
        """How severities jump where one path ends and the next begins."""
        pairs = ((before, after) for before, after in pairwise(self.steps) if before.segment != after.segment)
        jumps = [before.jump_to(after) for before, after in pairs]
        closing = self.steps[-1].jump_to(self.steps[0]) if self.closed else None
        if closing is not None:
            jumps.append(closing)
        mean, largest = (float(np.mean(jumps)), max(jumps)) if jumps else (0.0, 0.0)
        return Seams(len(jumps), sum(jump > 0 for jump in jumps), mean, largest, closing)

    def step_at(self, index: int) -> int:
        """The number of the step that image ``index`` of the walk belongs to."""
        if not 0 <= index < len(self):
            raise InputError(f"image {index} of a walk of {len(self)} images; expected 0 … {len(self) - 1}")
        return int(np.searchsorted(self.ends, index, side="right"))

    def spans(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """The parts of some positions of a stream that lie within one step each.

        Each is the number of the step, where those of earlier laps count too, its first position, and the one after its
        last.
        """
        while begin < end:
            lap, index = divmod(begin, len(self))
            number = self.step_at(index)
            stop = min(end, lap * len(self) + int(self.ends[number]))
            yield lap * len(self.steps) + number, begin, stop
            begin = stop

    @property
    def accuracy(self) -> float:
        """The mean calibrated accuracy over the images."""
        return float(np.average([s.accuracy for s in self.steps], weights=[s.images for s in self.steps]))

    def to_json(self) -> str:
        """The walk as text; `from_json` is the way back."""
        head = {
            "format": FORMAT,
            "closed": self.closed,
            "protocol": as_json(self.protocol),
            "seams": vars(self.seams),
            "columns": list(WalkStep._fields),
        }
        lines = ",\n".join(json.dumps(step, ensure_ascii=False) for step in self.steps)
        return json.dumps(head, ensure_ascii=False, sort_keys=True)[:-1] + ', "steps": [\n' + lines + "\n]}\n"

    @classmethod
    def from_json(cls, text: str, *, name: str = "walk", catalog: Catalog = catalog) -> Walk:
        """The walk that a text describes, with every corruption and severity checked."""
        try:
            data = parse_json(text)
            if data["format"] != FORMAT:
                raise InputError(f"{name}: a walk of format {data['format']}; this version reads format {FORMAT}")
            steps = tuple(
                WalkStep(str(a), float(s), str(b), float(t), int(n), float(p), int(k))
                for a, s, b, t, n, p, k in data["steps"]
            )
            walk = cls(steps, read_typed(WalkInfo, data["protocol"], "protocol"), bool(data["closed"]))
        except InputError as error:
            raise InputError(f"{name}: {str(error).removeprefix(f'{name}: ')}") from error
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{name}: not a walk ({error!r}); expected what blemish ccc walk writes") from error
        for step in walk.steps:
            for corruption, severity in ((step.first, step.first_severity), (step.second, step.second_severity)):
                catalog[corruption].require(check_severity(severity))
        if data.get("seams", vars(walk.seams)) != vars(walk.seams):
            raise InputError(f"{name}: says {data['seams']} of its seams, and its steps say {vars(walk.seams)}")
        return walk


def read_walk(path: str | os.PathLike[str], *, catalog: Catalog = catalog) -> Walk:
    """The walk in a file; its corruptions are those of the catalog."""
    return Walk.from_json(read_text(path), name=os.fspath(path), catalog=catalog)
