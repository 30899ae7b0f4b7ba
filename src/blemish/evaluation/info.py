"""What run files and headers of records say, typed: all that changes numbers, so that two runs can be compared by it.

`blemish.core.typed` tells how to add an entry that older files do not have.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from blemish.benchmarks.condition import Condition
from blemish.core.typed import optional_field
from blemish.corruptions.plugins import OwnVersion
from blemish.models.base import ModelInfo


@dataclass(frozen=True)
class WholeBenchmark:
    """The benchmark of which a run is only a part, and how many conditions it has besides clean."""

    name: str
    conditions: int


@dataclass(frozen=True)
class BenchmarkInfo:
    """The benchmark, as far as reading its results needs it; ``families`` are those of its corruptions."""

    name: str
    metric: str
    conditions: list[str]
    families: dict[str, str]
    title: str = ""
    baseline: str | None = None
    part_of: WholeBenchmark | None = None
    reference: str | None = optional_field()


@dataclass(frozen=True)
class ProtocolInfo:
    """Everything besides the data and the conditions that decides the pixels, and what the labels mean.

    ``corruptions`` holds the version of each, of a user's own with a digest of its code. ``stored`` holds fingerprints
    of a corrupted set on disk, by condition. ``superclasses`` are what the labels mean instead of the model's classes,
    whose probabilities are pooled as ``pool`` says.
    """

    seed: int = 0
    preset: str | None = None
    storage: str = "raw"
    resize: int | None = None
    crop: int | None = None
    square: int | None = None
    centre: float | None = None
    pixels: str = "generated"
    stored: dict[str, str] | None = None
    corruptions: dict[str, int | OwnVersion] = field(default_factory=dict)
    frost: str | None = None
    labels: str = "as given"
    superclasses: str | None = optional_field()
    pool: str | None = optional_field()

    def of(self, condition: Condition) -> ProtocolInfo:
        """The part that decides the records of one condition; runs grow by further conditions."""
        names = condition.names()
        return replace(
            self,
            corruptions={name: entry for name, entry in self.corruptions.items() if name in names},
            frost=self.frost if "frost" in names else None,
            stored=None if self.stored is None else {k: v for k, v in self.stored.items() if k == str(condition)},
        )


@dataclass(frozen=True)
class DataInfo:
    """The images: how many, which, and a fingerprint of their names, labels and pixels."""

    images: int
    name: str = "images"
    classes: int | None = None
    fingerprint: str = ""
    selection: str = "all"
    others: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskInfo:
    """What a model is asked for, where that is no class of an image, and what is kept of its answers.

    ``columns`` names what records hold of an image, and the type of each; ``settings`` is what else decides the
    numbers. Only those who made the records, and those who score them, know what a ``name`` means.
    """

    name: str
    columns: dict[str, str]
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunInfo:
    """A run file.

    ``stages`` is the data of each part of a run that grew; ``until`` tells whether it went on until it was precise
    enough, ``allow_chance`` whether it was to go on even near chance. ``classes`` are the names of the classes, if
    known, and ``task`` what the model is asked for, where that is not the class of an image. Headers of records repeat
    the protocol, the model, the task and their stage's data.
    """

    benchmark: BenchmarkInfo
    protocol: ProtocolInfo
    model: ModelInfo
    data: DataInfo
    stages: tuple[DataInfo, ...]
    until: bool = False
    allow_chance: bool = False
    classes: tuple[str, ...] | None = None
    made_with: dict[str, str] = field(default_factory=dict)
    task: TaskInfo | None = optional_field()

    def header(self, stage: int, condition: Condition) -> RecordsHeader:
        """What the records of a condition say of how they were made; what they are of is still to be filled in."""
        return RecordsHeader(
            benchmark=(self.benchmark.part_of or self.benchmark).name,
            made_with=self.made_with,
            protocol=self.protocol.of(condition),
            model=self.model,
            data=self.stages[stage],
            task=self.task,
        )

    def unlike(self, header: RecordsHeader, stage: int, condition: Condition) -> str | None:
        """The first entry in which the header of records is not that of this run."""
        if header.protocol is None or header.protocol.of(condition) != self.protocol.of(condition):
            return "protocol"
        if header.model != self.model:
            return "model"
        if header.task != self.task:
            return "task"
        return None if header.data == self.stages[stage] else "data"


@dataclass(frozen=True)
class RecordsHeader:
    """The header of a file of records: its condition, and how it was measured.

    ``pixels`` is a fingerprint of its images, and ``zipf`` tells whether distances between frames were asked for. What
    a run says of itself is only in records of a run, and ``part`` (the batch size, the first batch and the one after
    the last) only in those of a part of a condition.
    """

    condition: str = ""
    pixels: str = ""
    zipf: bool = False
    benchmark: str | None = optional_field()
    made_with: dict[str, str] | None = optional_field()
    protocol: ProtocolInfo | None = optional_field()
    model: ModelInfo | None = optional_field()
    data: DataInfo | None = optional_field()
    part: tuple[int, int, int] | None = optional_field()
    task: TaskInfo | None = optional_field()
