"""Results of the arena as files: what a stream showed, and what a method said of it.

::

    OUT/arena.json                                   what all results have in common
    OUT/streams/<setting>.seed-1.parquet             each image of a stream, its label and its condition
    OUT/results/<setting>.seed-1/<method>.parquet    what a method predicted, and what can be seen without labels
    OUT/states/…                                     how far interrupted ones have come
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.benchmark import Protocol
from blemish.core.errors import InputError
from blemish.core.typed import as_json, optional_field
from blemish.evaluation.records import parquet_bytes
from blemish.models.base import ModelInfo
from blemish.studies.arena.course import Course
from blemish.studies.arena.setting import Setting
from blemish.studies.arena.units import AS_PUBLISHED, Variation
from blemish.studies.streams.tables import TableHeader, read_table

ARENA_FILE = "arena.json"


@dataclass(frozen=True, kw_only=True)
class ArenaInfo:
    """What all results in a folder have in common."""

    model: ModelInfo
    data: str
    images: int
    fingerprint: str
    image_list: str | None
    benchmark: str
    corruptions: tuple[str, ...]
    protocol: Protocol
    methods: str
    clean_images: int
    walk: str | None = None
    batch: int | None = optional_field()
    blemish: str | None = optional_field(compare=False)


@dataclass(frozen=True)
class StreamHeader(TableHeader):
    """Of a stream: its setting, order and seed, its conditions, and where blocks begin and methods start afresh."""

    kind: str = "arena stream"
    setting: Setting | None = None
    variant: str = ""
    seed: int = 0
    conditions: tuple[str, ...] = ()
    blocks: tuple[int, ...] = ()
    resets: tuple[int, ...] = ()


@dataclass(frozen=True)
class ResultHeader(TableHeader):
    """Of a method on a stream; ``arena`` is a digest of what all results have in common.

    ``options`` are those of the method in words. ``probes`` are the shares of images of some batches whose class stays
    the same in their mirror images. Clean images are predicted before and after the stream, without adapting; the
    classes are in the order of the images. What was measured of time and memory differs from run to run: ``seconds``
    of adapting and predicting, ``memory`` of the device in bytes, at most.
    """

    kind: str = "arena result"
    arena: str = ""
    setting: Setting | None = None
    variant: str = ""
    seed: int = 0
    method: str = ""
    options: str = ""
    variation: Variation = AS_PUBLISHED
    batch: int = 0
    images: int = 0
    passes: float | None = None
    probes: tuple[float, ...] = optional_field(default=(), compare=False)
    clean_labels: tuple[int, ...] = optional_field(default=(), compare=False)
    clean_before: tuple[int, ...] = optional_field(default=(), compare=False)
    clean_after: tuple[int, ...] = optional_field(default=(), compare=False)
    seconds: float = optional_field(default=0.0, compare=False)
    memory: int | None = optional_field(compare=False)
    device: str = optional_field(default="", compare=False)


@dataclass(frozen=True)
class StreamTable:
    """What a stream showed at each position: ids of images, labels, and numbers of conditions."""

    header: StreamHeader
    images: NDArray[np.int64]
    labels: NDArray[np.int64]
    condition: NDArray[np.int64]


@dataclass(frozen=True)
class MethodResult:
    """What a method said: classes (−1 where its scores were not numbers), whether it adapted, and label-free signals.

    ``entropy`` is that of each prediction; ``concentration`` and ``density`` belong to batches and stand at each of
    their images: the entropy of the mean logits, and the soft neighbourhood density.
    """

    header: ResultHeader
    predictions: NDArray[np.int64]
    entropy: NDArray[np.float64]
    concentration: NDArray[np.float64]
    density: NDArray[np.float64]
    adapted: NDArray[np.bool_]


_SIGNALS = ("entropy", "concentration", "density")


def stream_bytes(header: StreamHeader, course: Course, ids: NDArray[np.int64], labels: NDArray[np.int64]) -> bytes:
    """The file of a stream; ``ids`` and ``labels`` are those of the image set."""
    import pyarrow as pa

    columns = {
        "image": pa.array(ids[course.rows], pa.int64()),
        "label": pa.array(labels[course.rows], pa.int32()),
        "condition": pa.array(course.condition, pa.int32()),
    }
    return parquet_bytes(pa.table(columns), header)


def read_stream(path: Path) -> StreamTable:
    """The stream in a file."""
    header, table = read_table(path, StreamHeader, ("image", "label", "condition"))
    columns = (table[name].to_numpy().astype(np.int64) for name in ("image", "label", "condition"))
    return StreamTable(header, *columns)


def result_bytes(header: ResultHeader, columns: Mapping[str, NDArray[Any]]) -> bytes:
    """The file of a result."""
    import pyarrow as pa

    kinds = {"prediction": pa.int32(), "adapted": pa.bool_()} | dict.fromkeys(_SIGNALS, pa.float32())
    return parquet_bytes(pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()}), header)


def read_method_result(path: Path, expected: ResultHeader | None = None) -> MethodResult:
    """The result in a file; one that was made otherwise than ``expected`` is refused."""
    header, table = read_table(path, ResultHeader, ("prediction", "adapted", *_SIGNALS))
    if expected is not None and as_json(header, compared=True) != as_json(expected, compared=True):
        raise InputError(f"{path}: made with other settings than now; remove it, or choose another folder")
    if len(table) != header.images:
        raise InputError(f"{path}: {len(table):,} rows for {header.images:,} images; expected one each")
    entropy, concentration, density = (table[name].to_numpy().astype(np.float64) for name in _SIGNALS)
    predictions = table["prediction"].to_numpy().astype(np.int64)
    adapted = table["adapted"].to_numpy(zero_copy_only=False).astype(np.bool_)
    return MethodResult(header, predictions, entropy, concentration, density, adapted)
