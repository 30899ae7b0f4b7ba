"""What the files of streams say of how they were made, typed: calibrations, walks, streams and runs over them.

`blemish.core.typed` tells how to add an entry that older files do not have.
"""

from __future__ import annotations

from dataclasses import dataclass

from blemish.core.errors import InputError
from blemish.core.typed import optional_field
from blemish.models.base import ModelInfo
from blemish.studies.streams.adaptive import Refinement


@dataclass(frozen=True, kw_only=True)
class CalibrationInfo:
    """What the surfaces of a calibration depend on; ``code`` has digests of users' own corruptions of a pair."""

    images: int | None = None
    shape: tuple[int, ...] | None = None
    data_fingerprint: str | None = None
    image_list: str | None = None
    preparation: str | None = None
    jpeg: bool | None = None
    seed: int | None = None
    preset: str | None = None
    grid: tuple[float, ...] | None = None
    model: ModelInfo | None = None
    refinement: Refinement | None = None
    frost: str | None = None
    blemish: str | None = None
    code: dict[str, str] | None = optional_field()


@dataclass(frozen=True, kw_only=True)
class WalkInfo:
    """How the steps of a walk were chosen: its rule, its settings, the calibration, and the set that it belongs to.

    ``changed`` says in words in what it is not of its set; ``subset`` is how many images the set shows, where not all.
    """

    target: float | None = None
    objective: str | None = None
    ends: str | None = None
    seam_weight: float | None = optional_field()
    measured_only: bool | None = optional_field()
    corruptions: tuple[str, ...] = ()
    images: int | None = None
    speed: int | None = None
    seed: int | None = None
    start: str | None = None
    end: str | None = None
    repair: bool | None = optional_field()
    calibration: CalibrationInfo | None = optional_field()
    set: str | None = optional_field()
    subset: int | None = optional_field()
    changed: tuple[str, ...] | None = optional_field()

    def __post_init__(self) -> None:
        """Refuse a subset of no images."""
        if self.subset is not None and self.subset < 1:
            raise InputError(f"a subset of {self.subset} images; expected at least 1")


@dataclass(frozen=True, kw_only=True)
class StreamInfo:
    """What decides the pixels of a stream, but for the code of our corruptions; ``walk`` is a digest."""

    data: str
    data_fingerprint: str
    image_list: str
    image_count: int
    preparation: str
    walk: str
    seed: int
    jpeg: bool
    preset: str | None
    frost: str | None
    code: dict[str, str] | None = optional_field()


@dataclass(frozen=True, kw_only=True)
class ShardsInfo(StreamInfo):
    """What stands beside the shards of a stream."""

    images: int
    shard_images: int
    blemish: str


@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    """The settings of adaptation methods: which published ones (``methods``), and those of RDumb."""

    methods: str
    reset: int
    rdumb_margin: float


@dataclass(frozen=True, kw_only=True)
class StreamRunInfo:
    """Everything that the predictions of a run over a stream depend on."""

    stream: StreamInfo
    images: int
    batch: int
    methods: tuple[str, ...]
    model: ModelInfo | None = None
    settings: MethodSettings | None = None
    target: float | None = None
    blemish: str | None = None
