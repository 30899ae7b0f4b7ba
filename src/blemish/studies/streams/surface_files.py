"""Surfaces as files: Parquet, a row per cell, with which images were right in it.

Columns: ``first_severity``, ``second_severity``, ``accuracy``, and for measured cells ``images``, ``correct`` and
``hits``, one bit per image (`numpy.packbits`); these are empty for interpolated cells. The header names the ``pair``,
the ``grid``, the number of ``images`` and the ``protocol``, which describes the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from blemish.core.errors import InputError
from blemish.evaluation.records import parquet_bytes
from blemish.studies.streams.info import CalibrationInfo
from blemish.studies.streams.surface import Surface
from blemish.studies.streams.tables import TableHeader, read_table

_COLUMNS = ("first_severity", "second_severity", "accuracy", "images", "correct", "hits")


@dataclass(frozen=True)
class SurfaceHeader(TableHeader):
    """Which surface a file holds, and how it was measured."""

    kind: str = "ccc calibration"
    pair: tuple[str, str] = ("", "")
    grid: tuple[float, ...] = ()
    images: int = 0
    protocol: CalibrationInfo = field(default_factory=CalibrationInfo)


def surface_bytes(surface: Surface, info: CalibrationInfo) -> bytes:
    """The content of a surface's file."""
    import pyarrow as pa

    if surface.hits is None:
        raise InputError(f"surface of {surface.first} and {surface.second}: expected one that knows its images")
    grid, side = np.array(surface.grid), len(surface.grid)
    known = surface.known.ravel()
    hits = surface.hits.reshape(side**2, -1)
    correct = np.unpackbits(hits, axis=1).sum(1)
    columns = {
        "first_severity": pa.array(np.repeat(grid, side), pa.float64()),
        "second_severity": pa.array(np.tile(grid, side), pa.float64()),
        "accuracy": pa.array(surface.accuracy.ravel(), pa.float64()),
        "images": pa.array(np.full(side**2, surface.images), pa.int32(), mask=~known),
        "correct": pa.array(correct, pa.int32(), mask=~known),
        "hits": pa.array([row.tobytes() if measured else None for row, measured in zip(hits, known, strict=True)]),
    }
    header = SurfaceHeader(
        pair=(surface.first, surface.second), grid=surface.grid, images=surface.images, protocol=info
    )
    return parquet_bytes(pa.table(columns), header)


def read_surface(path: Path) -> tuple[Surface, CalibrationInfo]:
    """A surface and how it was measured; a file that contradicts itself is refused with its name."""
    header, table = read_table(path, SurfaceHeader, _COLUMNS)
    try:
        return _surface(header, {name: table[name].to_pylist() for name in _COLUMNS}), header.protocol
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a calibration surface ({error!r})") from error


def _surface(header: SurfaceHeader, columns: dict[str, list[Any]]) -> Surface:
    (first, second), grid, images = header.pair, header.grid, header.images
    side, width = len(grid), -(-images // 8)
    cells = [(a, b) for a in grid for b in grid]
    if list(zip(columns["first_severity"], columns["second_severity"], strict=True)) != cells:
        raise InputError(f"damaged records: {len(columns['accuracy'])} rows; expected the {len(cells)} cells of a grid")
    known = np.array([row is not None for row in columns["hits"]])
    packed = b"".join(row or bytes(width) for row in columns["hits"])
    hits = np.frombuffer(packed, dtype=np.uint8).reshape(side, side, width)
    right = np.unpackbits(hits, axis=2)
    correct = right[..., :images].sum(2).ravel()
    if bool(right[..., images:].any()) or correct[known].tolist() != [n for n in columns["correct"] if n is not None]:
        raise InputError("damaged records: the counts of correct images do not agree with the images")
    accuracy = np.array(columns["accuracy"], dtype=np.float64)
    if not np.array_equal(accuracy[known], correct[known] / images):
        raise InputError("damaged records: accuracies do not agree with the counts of correct images")
    measured = None if known.all() else known.reshape(side, side)
    return Surface(first, second, accuracy.reshape(side, side), images, grid, measured, hits)
