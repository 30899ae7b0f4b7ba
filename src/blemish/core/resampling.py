"""Weights over images: resamples for intervals, and signs for tests that swap two models' answers.

Images are drawn together with everything that was measured on them, so conditions and models stay paired.
"""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.rng import check_seed

Array = NDArray[Any]
Key = TypeVar("Key")


@runtime_checkable
class Weighted(Protocol):
    """A column whose number is no mean over images, such as average precision; it is told how much each counts."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Array) -> Weighted:
        """The column of some of the images."""

    def joined(self, other: Any) -> Weighted:
        """The column of these images and then those of another."""

    def weighted(self, weights: Array) -> Array:
        """The number for each row of weights over images."""


# Weights held at once: 64 MB of float32.
_ROOM = 2**24


@dataclass(frozen=True)
class _Weights(ABC):
    """Rows of weights over images, a row per replicate, drawn one after the other from one stream of a seed."""

    images: int
    replicates: int = 1000
    seed: int = 0
    stream: int = 0

    purpose: ClassVar[int]
    doing: ClassVar[str]

    def __post_init__(self) -> None:
        """Raise unless there is something to draw, and from a seed."""
        if self.images < 1:
            raise InputError(f"{self.images} images to resample; expected at least 1")
        if self.replicates < 1:
            raise InputError(f"{self.replicates} replicates; expected at least 1")
        check_seed(self.seed, least=0)

    @abstractmethod
    def _row(self, rng: np.random.Generator) -> Array:
        """One row of weights."""

    def blocks(self) -> Iterator[Array]:
        """The weights, float32 (some replicates, images), as many rows at a time as memory should hold."""
        size = max(1, _ROOM // self.images)
        rng = np.random.default_rng([self.seed, self.purpose, self.stream])
        for start in range(0, self.replicates, size):
            block = np.empty((min(size, self.replicates - start), self.images), dtype=np.float32)
            for row in block:
                row[:] = self._row(rng)
            yield block

    @abstractmethod
    def _total(self, block: Array) -> Array:
        """What a block's weighted sums over its images are divided by, a number or one per replicate."""

    def means(
        self,
        columns: Mapping[Key, Array | Weighted],
        rows: Array | None = None,
        *,
        report: ProgressReport = tell_nobody,
    ) -> dict[Key, Array]:
        """Weighted means over images of columns (images,) or (images, k), as (replicates,) or (replicates, k).

        ``rows`` says which of the images the columns are about, where not all: they are then resampled together with
        the rest. A column is asked for anew in each block, so the mapping may make it when it is asked.
        """
        count = self.images if rows is None else len(rows)
        blocks: dict[Key, list[Array]] = {key: [] for key in columns}
        made = 0
        for whole in self.blocks():
            report(made, self.replicates, self.doing)
            made += len(whole)
            block = whole if rows is None else whole[:, rows]
            # Few of many images may not be drawn at all; they then count as they are.
            block[~block.any(axis=1)] = 1
            total, wide = self._total(block), None
            for number, (key, parts) in enumerate(blocks.items()):
                if isinstance(column := columns[key], Weighted):
                    # These take long, and a block may hold all replicates.
                    report(made - len(whole) + len(whole) * number // len(blocks), self.replicates, self.doing)
                    parts.append(self._of_weighted(key, column, block))
                    continue
                values = np.asarray(column)
                if len(values) != count:
                    raise InputError(f"{key}: {len(values)} values for {count} images; expected one each")
                if values.dtype.kind in "biu":
                    # Sums of outcomes are whole numbers far below 2²⁴, so float32 holds them exactly.
                    sums = (block @ values.astype(np.float32)).astype(np.float64)
                else:
                    # Other sums depend on their order, which is another on every processor: digits to spare.
                    wide = block.astype(np.float64) if wide is None else wide
                    sums = wide @ values.astype(np.float64)
                parts.append((sums.T / total).T)
        return {key: np.concatenate(parts) for key, parts in blocks.items()}

    def _of_weighted(self, key: object, column: Weighted, block: Array) -> Array:
        if len(column) != block.shape[1]:
            raise InputError(f"{key}: {len(column)} values for {block.shape[1]} images; expected one each")
        return column.weighted(block)


@dataclass(frozen=True)
class Bootstrap(_Weights):
    """Resamples of the images with replacement: each row counts how often an image was drawn."""

    purpose = 0
    doing = "resampling images"

    def _row(self, rng: np.random.Generator) -> Array:
        return np.bincount(rng.integers(0, self.images, self.images), minlength=self.images)

    def _total(self, block: Array) -> Array:
        return np.asarray(block.sum(axis=1, dtype=np.float64))

    def accuracies(self, correct: ArrayLike) -> Array:
        """(replicates, conditions) out of (images, conditions) of outcomes."""
        return self.means({"correct": np.asarray(correct)})["correct"]


@dataclass(frozen=True)
class Swaps(_Weights):
    """Random signs, one per image and replicate: −1 where the answers of two models change places."""

    purpose = 1
    doing = "swapping answers"

    def _row(self, rng: np.random.Generator) -> Array:
        return rng.integers(0, 2, self.images, dtype=np.int8) * 2 - 1

    def _total(self, block: Array) -> Array:
        return np.asarray(block.shape[1])


def stream_of(table: str) -> int:
    """Which random stream belongs to a set of images; the benchmark's own, without a name, has stream 0."""
    return zlib.crc32(table.encode())
