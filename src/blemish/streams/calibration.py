"""Calibration: the accuracy of a model under every ordered pair of corruptions, over a grid of severities.

One file per pair in a folder, each complete or not there, and one that states the protocol; a stopped calibration goes
on where it was. The random draws of an image are the same in all cells, so that surfaces are smooth.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.corruptions.base import check_images
from blemish.corruptions.catalog import Catalog, catalog
from blemish.ops.textures import frost_kind
from blemish.rng import as_ids
from blemish.storage.files import check_folder, write_bytes
from blemish.streams.adaptive import Cells, Refinement, refined
from blemish.streams.surface import GRID, Surface, check_grid
from blemish.types import InputError
from blemish.version import VERSION

__all__ = ["PROTOCOL_FILE", "Bench", "calibrate", "measure", "pair_file", "read_calibration"]

PROTOCOL_FILE = "calibration.json"

Pair = tuple[str, str]
Predict = Callable[[Tensor], Tensor]
"""Scores (B, classes) of a uint8 batch (B, C, H, W)."""

_KEEP_BYTES = 2**31


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
        self.ids = torch.arange(len(self.images)) if len(self.ids) == 0 else as_ids(self.ids)
        for what, values in (("labels", self.labels), ("ids", self.ids)):
            if values.shape != (len(self.images),):
                raise InputError(
                    f"{what} of shape {tuple(values.shape)} for {len(self.images)} images; expected one each"
                )
        if self.batch < 1:
            raise InputError(f"batches of {self.batch}; expected at least 1")
        self.labels = self.labels.to(self.images.device)
        self._alone: dict[tuple[str, int], int] = {}
        self._kept: dict[tuple[str, int], Tensor] = {}

    def count(self, first: str, second: str, cells: Cells) -> list[int]:
        """How many images are classified correctly in each cell (a, b) of the grid."""
        both = sorted({(a, b) for a, b in cells if a > 0 and b > 0})
        counts = dict(zip(both, self._both(first, second, both), strict=True))
        for a, b in cells:
            if a == 0 or b == 0:
                counts[a, b] = self._single(*((second, b) if a == 0 else (first, a)))
        return [counts[a, b] for a, b in cells]

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

    def _single(self, name: str, level: int) -> int:
        """One corruption alone is the same in every pair."""
        key = ("", 0) if level == 0 else (name, level)
        if key not in self._alone:
            images = self._first(name, level)
            parts = self._parts(len(images))
            self._alone[key] = sum(int(self._hits(images[rows], self.labels[rows]).sum()) for rows in parts)
        return self._alone[key]

    def _first(self, name: str, level: int) -> Tensor:
        """All images under the first corruption, kept for the pairs to come where there is room."""
        if level == 0:
            return self.images
        if (name, level) not in self._kept:
            if any(other != name for other, _ in self._kept):
                self._kept.clear()
            parts = self._parts(len(self.images))
            done = torch.cat([self._corrupted(self.images[rows], name, self.grid[level], rows) for rows in parts])
            if self.images.numel() * len(self.grid) > _KEEP_BYTES:
                return done
            self._kept[name, level] = done
        return self._kept[name, level]

    def _both(self, first: str, second: str, cells: Cells) -> list[int]:
        """Correct images in cells sorted by row; cells share batches, because one is too small for a large device."""
        count, device = len(self.images), self.images.device
        right = torch.zeros(len(cells), dtype=torch.int64, device=device)
        for part in self._parts(count * len(cells)):
            which, rows = torch.arange(part.start, part.stop) // count, torch.arange(part.start, part.stop) % count
            batch = self._gathered(first, torch.tensor([a for a, _ in cells])[which], rows)
            levels = torch.tensor([self.grid[b] for _, b in cells], dtype=torch.float64)[which]
            batch = self._corrupted(batch, second, levels, rows)
            hits = self._hits(batch, self.labels[rows.to(device)])
            right.index_add_(0, which.to(device), hits.to(torch.int64))
        found: list[int] = right.tolist()
        return found

    def _gathered(self, first: str, levels: Tensor, rows: Tensor) -> Tensor:
        """Images at ``rows`` under the first corruption, each at its own place of the grid; places are sorted."""
        device = self.images.device
        parts = [self._first(first, a)[rows[levels == a].to(device)] for a in np.unique(levels.numpy()).tolist()]
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def _hits(self, batch: Tensor, labels: Tensor) -> Tensor:
        return self.predict(batch).argmax(1) == labels

    def _corrupted(self, images: Tensor, name: str, severity: float | Tensor, rows: slice | Tensor) -> Tensor:
        ids = self.ids[rows]
        return self.catalog[name](images, severity=severity, seed=self.seed, ids=ids, preset=self.preset)

    def _parts(self, count: int) -> Iterable[slice]:
        return [slice(i, min(i + self.batch, count)) for i in range(0, count, self.batch)]


def calibrate(
    bench: Bench,
    names: Sequence[str],
    *,
    folder: Path | None = None,
    refinement: Refinement | None = None,
    model: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[Pair, Surface]:
    """The surfaces of all ordered pairs of corruptions; with a ``refinement``, only the cells that its paths may use.

    ``folder`` keeps them, and what is there already is not measured again. ``model`` describes the model in the
    protocol.
    """
    if len(set(names)) != len(names) or len(names) < 2:
        raise InputError(f"corruptions {', '.join(names)}; expected at least two, each once")
    for name in names:
        if bench.catalog[name].only_severity is not None:
            raise InputError(f"{name} exists at one severity only; it cannot fade in and out")
    if folder is not None:
        check_folder(folder)
        _check_protocol(folder, _protocol(bench, refinement, model))
    pairs = [(first, second) for first in names for second in names if first != second]
    surfaces: dict[Pair, Surface] = {}
    for number, pair in enumerate(pairs):
        path = None if folder is None else folder / pair_file(*pair)
        if path is not None and path.is_file():
            surfaces[pair] = _read_surface(path, pair)
        else:
            surfaces[pair] = measure(bench, *pair, refinement=refinement)
            if path is not None:
                write_bytes(path, (json.dumps(surfaces[pair].to_json()) + "\n").encode())
        if progress is not None:
            progress(number + 1, len(pairs))
    return surfaces


def measure(bench: Bench, first: str, second: str, *, refinement: Refinement | None = None) -> Surface:
    """The surface of one ordered pair."""
    side, total = len(bench.grid), len(bench.images)

    def count(cells: Cells) -> NDArray[np.float64]:
        return np.array(bench.count(first, second, cells), dtype=np.float64) / total

    if refinement is not None:
        values, measured = refined(count, side, refinement)
        return Surface(first, second, values, total, bench.grid, measured)
    cells = [(a, b) for a in range(side) for b in range(side)]
    return Surface(first, second, count(cells).reshape(side, side), total, bench.grid)


def _protocol(bench: Bench, refinement: Refinement | None, model: Mapping[str, Any] | None) -> dict[str, Any]:
    how = None if refinement is None else refinement._asdict()
    settings = {
        **bench.describe(),
        "model": dict(model or {}),
        "refinement": how,
        "frost": frost_kind(),
        "blemish": VERSION,
    }
    plain: dict[str, Any] = json.loads(json.dumps(settings))
    return plain


def _check_protocol(folder: Path, protocol: dict[str, Any]) -> None:
    path = folder / PROTOCOL_FILE
    if not path.exists():
        write_bytes(path, (json.dumps(protocol, indent=1, sort_keys=True) + "\n").encode())
        return
    found = _read_json(path)
    different = sorted(key for key in protocol if not isinstance(found, dict) or found.get(key) != protocol[key])
    if different:
        raise InputError(
            f"{folder}: holds a calibration made otherwise ({', '.join(different)} differ); choose another folder"
        )


def pair_file(first: str, second: str) -> str:
    """The file name of a pair's surface.

    >>> pair_file("fog", "noc:rain")
    'fog+noc_rain.json'
    """
    return f"{first}+{second}.json".replace(":", "_")


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not readable ({error})") from error


def _read_surface(path: Path, pair: Pair | None = None) -> Surface:
    try:
        surface = Surface.from_json(_read_json(path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if pair is not None and (surface.first, surface.second) != pair:
        raise InputError(
            f"{path}: the surface of {surface.first} and {surface.second}; expected {pair[0]} and {pair[1]}"
        )
    return surface


def read_calibration(folder: Path) -> tuple[dict[Pair, Surface], dict[str, Any]]:
    """All surfaces in a folder, and the protocol."""
    path = folder / PROTOCOL_FILE
    if not path.is_file():
        raise InputError(f"{folder}: no {PROTOCOL_FILE} in it; expected a folder that blemish ccc calibrate made")
    surfaces = [_read_surface(file) for file in sorted(folder.glob("*+*.json"))]
    if not surfaces:
        raise InputError(f"{folder}: no surfaces in it yet; run blemish ccc calibrate again to finish")
    return {(surface.first, surface.second): surface for surface in surfaces}, dict(_read_json(path))
