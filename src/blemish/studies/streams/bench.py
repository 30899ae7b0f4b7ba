"""A bench: a model and images to measure it on, under two corruptions in a row.

The random draws of an image are the same in all cells, so that surfaces are smooth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.rng import as_ids, check_seed
from blemish.corruptions.base import check_images
from blemish.corruptions.catalog import Catalog, catalog
from blemish.data.labels import check_below
from blemish.studies.streams.adaptive import Cells
from blemish.studies.streams.surface import GRID, check_grid

__all__ = ["Bench", "Predict"]

Predict = Callable[[Tensor], Tensor]
"""Scores (B, classes) of a uint8 batch (B, C, H, W)."""

_KEEP_BYTES = 2**31

# In place of right (1) or wrong (0), where the scores of an image are not numbers.
_NOT_A_NUMBER = 2

Cell = tuple[int, int]
Span = tuple[Cell, slice]
"""Some images in a row, in one cell."""


@dataclass
class Bench:
    """A model, labelled images to measure it on, and the settings that decide the outcome.

    ``images`` is a uint8 batch (N, C, H, W) on the device to work on; ``batch`` images at most are corrupted and
    classified at once.
    """

    predict: Predict
    images: Tensor
    labels: Tensor
    ids: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int64))
    seed: int = 0
    preset: str | None = None
    batch: int = 1024
    grid: tuple[float, ...] = GRID
    catalog: Catalog = field(default_factory=lambda: catalog)

    def __post_init__(self) -> None:
        """Check the data, and number images without ids."""
        check_images(self.images)
        if self.images.dtype != torch.uint8:
            raise InputError(f"images of type {self.images.dtype} to calibrate on; expected uint8")
        check_grid(self.grid)
        check_seed(self.seed)
        self.ids = torch.arange(len(self.images)) if len(self.ids) == 0 else as_ids(self.ids)
        for what, values in (("labels", self.labels), ("ids", self.ids)):
            if values.shape != (len(self.images),):
                raise InputError(
                    f"{what} of shape {tuple(values.shape)} for {len(self.images)} images; expected one each"
                )
        if self.batch < 1:
            raise InputError(f"batches of {self.batch}; expected at least 1")
        self._top = int(self.labels.max())
        self.labels = self.labels.to(self.images.device)
        self._keeps_all = self.images.numel() * (len(self.grid) - 1) <= _room(self.images.device)
        self._alone: dict[tuple[str, int], NDArray[np.bool_]] = {}
        self._kept: dict[tuple[str, int], Tensor] = {}

    def hits(self, first: str, second: str, cells: Cells) -> NDArray[np.bool_]:
        """Which images are classified correctly in each cell (a, b) of the grid, as (cells, images)."""
        # Within a batch, either corruption is quickest at one severity. The second one is applied anew in every cell,
        # but where results of the first one cannot be kept, these come before it.
        order = _by_second if self._keeps_all else None
        new = sorted({cell for cell in cells if _key(first, second, cell) not in self._alone}, key=order)
        groups = [[cell for cell in new if cell[1] == 0], [cell for cell in new if cell[1] > 0]]
        found: dict[Cell, NDArray[np.bool_]] = {}
        if new:
            device = torch.cat([self._classified(first, second, group) for group in groups if group])
            # The only place where the host waits for the device.
            right = device.cpu().numpy()
            if (right == _NOT_A_NUMBER).any():
                raise InputError(
                    f"{first} + {second}: the model gave scores that are not numbers; expected finite ones"
                )
            found = dict(zip(groups[0] + groups[1], right.astype(np.bool_), strict=True))
        for cell, row in found.items():
            # One corruption alone is the same in every pair.
            if (key := _key(first, second, cell)) is not None:
                self._alone[key] = row
        return np.stack([found[c] if c in found else self._alone[_key(first, second, c) or ("", 0)] for c in cells])

    def describe(self) -> dict[str, Any]:
        """What the numbers depend on, but for the model."""
        digest = hashlib.blake2b(self.images.cpu().contiguous().numpy().tobytes(), digest_size=12)
        digest.update(self.labels.cpu().numpy().tobytes() + self.ids.numpy().tobytes())
        return {
            "images": len(self.images),
            "shape": list(self.images.shape[1:]),
            "data_fingerprint": digest.hexdigest(),
            "seed": self.seed,
            "preset": self.preset,
            "grid": list(self.grid),
        }

    def _classified(self, first: str, second: str, cells: Sequence[Cell]) -> Tensor:
        """Which images are right (1) or cannot be told, on the device.

        Cells share batches, because one is too small for a large device. Either all are without the second corruption
        or none is.
        """
        right = []
        for spans in self._batches(cells):
            batch = _joined([self._first(first, a)[rows] for (a, _), rows in spans])
            if cells[0][1] > 0:
                severity = self._severity(spans)
                ids = _joined([self.ids[rows] for _, rows in spans])
                batch = self._corrupted(batch, second, severity, ids)
            scores = self.predict(batch)
            if scores.shape[1] <= self._top:
                check_below(
                    self.labels.cpu().numpy(), self.ids.numpy(), scores.shape[1], source="bench", model="the model"
                )
            hit = scores.argmax(1) == _joined([self.labels[rows] for _, rows in spans])
            right.append(hit.to(torch.uint8).masked_fill(~scores.amax(1).isfinite(), _NOT_A_NUMBER))
        return torch.cat(right).view(len(cells), len(self.images))

    def _batches(self, cells: Sequence[Cell]) -> Iterator[list[Span]]:
        """The images of all cells, cut into batches."""
        count = len(self.images)
        for begin in range(0, count * len(cells), self.batch):
            end = min(begin + self.batch, count * len(cells))
            touched = range(begin // count, -(-end // count))
            yield [(cells[c], slice(max(0, begin - c * count), min(count, end - c * count))) for c in touched]

    def _severity(self, spans: Sequence[Span]) -> float | Tensor:
        """The severity of the second corruption, one number where it is the same for all images."""
        levels = [self.grid[b] for (_, b), _ in spans]
        if len(set(levels)) == 1:
            return levels[0]
        lengths = torch.tensor([rows.stop - rows.start for _, rows in spans])
        return torch.tensor(levels, dtype=torch.float64).repeat_interleave(lengths)

    def _first(self, name: str, level: int) -> Tensor:
        """All images under the first corruption: at all severities kept for the pairs to come, or at one of them."""
        if level == 0:
            return self.images
        if (name, level) not in self._kept:
            if not self._keeps_all or any(other != name for other, _ in self._kept):
                self._kept.clear()
            parts = [slice(i, i + self.batch) for i in range(0, len(self.images), self.batch)]
            severity = self.grid[level]
            done = [self._corrupted(self.images[rows], name, severity, self.ids[rows]) for rows in parts]
            self._kept[name, level] = _joined(done)
        return self._kept[name, level]

    def _corrupted(self, images: Tensor, name: str, severity: float | Tensor, ids: Tensor) -> Tensor:
        return self.catalog[name](images, severity=severity, seed=self.seed, ids=ids, preset=self.preset)


def _room(device: torch.device) -> int:
    """Bytes that may be filled with images to be used again: a quarter of what a GPU has free, or 2 GB."""
    return _KEEP_BYTES if device.type != "cuda" else max(_KEEP_BYTES, torch.cuda.mem_get_info(device)[0] // 4)


def _by_second(cell: Cell) -> Cell:
    return cell[1], cell[0]


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _key(first: str, second: str, cell: Cell) -> tuple[str, int] | None:
    """A name for a cell in which at most one corruption is at work."""
    a, b = cell
    if a > 0 and b > 0:
        return None
    return (first, a) if a > 0 else (second, b) if b > 0 else ("", 0)
