"""The run file: everything that changes the numbers of a run, typed, so that two runs can be compared by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from blemish.benchmarks.condition import Condition
from blemish.core.typed import read_typed
from blemish.models.base import Training


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


@dataclass(frozen=True)
class ProtocolInfo:
    """Everything besides the data and the conditions that decides the pixels, and what the labels mean.

    ``corruptions`` holds the version of each, of a user's own with a digest of its code. ``stored`` holds fingerprints
    of a corrupted set on disk, by condition.
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
    corruptions: dict[str, Any] = field(default_factory=dict)
    frost: str | None = None
    labels: str = "as given"

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
class ModelInfo:
    """The model: where it comes from, a digest of its weights, its preprocessing, and what it was trained on."""

    name: str
    kind: str = ""
    weights: str = ""
    preprocessing: dict[str, Any] = field(default_factory=dict)
    output: str = ""
    skip_classes: int = 0
    training: Training | None = None
    outputs: int | None = None


@dataclass(frozen=True)
class RunInfo:
    """A run file.

    ``stages`` is the data of each part of a run that grew; ``until`` tells whether it went on until it was precise
    enough, ``allow_chance`` whether it was to go on even near chance. ``classes`` are the names of the classes, if
    known. Headers of records repeat the protocol, the model and their stage's data.
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

    def header(self, stage: int, condition: Condition) -> dict[str, Any]:
        """What the records of a condition say of how they were made."""
        return {
            "benchmark": (self.benchmark.part_of or self.benchmark).name,
            "made_with": self.made_with,
            "protocol": asdict(self.protocol.of(condition)),
            "model": asdict(self.model),
            "data": asdict(self.stages[stage]),
        }

    def unlike(self, header: Mapping[str, Any], stage: int, condition: Condition) -> str | None:
        """The first entry in which the header of records is not that of this run."""
        protocol = read_typed(ProtocolInfo, header.get("protocol"), "protocol").of(condition)
        if protocol != self.protocol.of(condition):
            return "protocol"
        if read_typed(ModelInfo, header.get("model"), "model") != self.model:
            return "model"
        return None if read_typed(DataInfo, header.get("data"), "data") == self.stages[stage] else "data"
