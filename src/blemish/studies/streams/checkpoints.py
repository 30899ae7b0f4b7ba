"""Checkpoints of a run over a stream, and the parts of its result that they cover.

The last two are kept: where the newest, or a part that only it needs, is damaged, the one before is gone on from.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import BlemishError, InputError
from blemish.core.files import digest_of, file_digest, write_bytes
from blemish.core.states import DamagedFileError, read_state, state_bytes
from blemish.core.typed import as_json
from blemish.evaluation.records import parquet_bytes
from blemish.studies.streams.info import StreamRunInfo
from blemish.studies.streams.tables import TableHeader, read_table

Columns = dict[str, NDArray[np.int64]]

IMAGE_COLUMNS = ("position", "image", "label", "step")
"""The columns of a part beside the predictions."""

_KEPT = 2
_NAME = re.compile(r"checkpoint-(\d{10})\.pt")


@dataclass(frozen=True)
class PartHeader(TableHeader):
    """The run that a part belongs to, and the position of its first image."""

    kind: str = "ccc run"
    run: StreamRunInfo | None = None
    begin: int = 0


@dataclass(frozen=True)
class Checkpoint:
    """How far a run has come: images done, the parts of the result so far, and the state of every method."""

    done: int
    parts: list[Columns]
    states: Mapping[str, Any]
    digests: dict[int, str]


class Checkpoints:
    """Those in a folder, of the run that ``info`` describes."""

    def __init__(self, folder: Path, info: StreamRunInfo) -> None:
        self.folder, self.info = folder, info
        self._kept: list[Path] = []
        self._digests: dict[int, str] = {}

    def newest(self) -> Checkpoint | None:
        """The newest that is whole; None where there is none yet, and an error where all are damaged."""
        errors: list[BlemishError] = []
        for path in sorted(self._paths(), reverse=True):
            try:
                checkpoint = self._read(path)
            except (InputError, DamagedFileError) as error:
                errors.append(error)
                continue
            if errors:
                warnings.warn(
                    f"{errors[0]}; the checkpoint before it, of {checkpoint.done:,} images, is used",
                    RuntimeWarning,
                    stacklevel=3,
                )
            return checkpoint
        if errors:
            raise DamagedFileError(f"{errors[0]}; remove {self.folder} to begin again") from errors[0]
        return None

    def resume(self) -> Checkpoint | None:
        """The newest, to go on from: parts that it does not cover are removed, as the run makes them again."""
        checkpoint = self.newest()
        done = 0 if checkpoint is None else checkpoint.done
        for path in self.folder.glob("part-*.parquet"):
            if path.name >= _part_name(done):
                path.unlink(missing_ok=True)
        if checkpoint is not None:
            self._kept, self._digests = [self._path(done)], dict(checkpoint.digests)
        return checkpoint

    def save(self, begin: int, part: Columns, states: Mapping[str, Any]) -> None:
        """Write a part, and then the checkpoint: only what a checkpoint covers counts."""
        import pyarrow as pa

        wide = ("position", "image")
        columns = {name: pa.array(values, pa.int64() if name in wide else pa.int32()) for name, values in part.items()}
        content = parquet_bytes(pa.table(columns), PartHeader(run=self.info, begin=begin))
        write_bytes(self.folder / _part_name(begin), content, destination=self.folder)
        self._digests[begin] = digest_of(content).hash
        done = begin + len(part["label"])
        state = {"done": done, "run": run_mark(self.info), "parts": dict(self._digests), "methods": dict(states)}
        write_bytes(self._path(done), state_bytes(state), destination=self.folder)
        self._kept = [*self._kept, self._path(done)][-_KEPT:]
        for path in self._paths():
            if path not in self._kept:
                path.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        return [path for path in self.folder.glob("checkpoint-*.pt") if _NAME.fullmatch(path.name)]

    def _path(self, done: int) -> Path:
        return self.folder / f"checkpoint-{done:010d}.pt"

    def _read(self, path: Path) -> Checkpoint:
        """A checkpoint whose numbers agree with its name, with the run, and with the parts beside it."""
        state = read_state(path, ("done", "run", "parts", "methods"))
        done, images, batch = state["done"], self.info.images, self.info.batch
        if type(done) is not int or path != self._path(done) or not 0 < done <= images:
            raise DamagedFileError(f"{path}: damaged ({done} images done, of {images})")
        if done % batch and done != images:
            raise DamagedFileError(f"{path}: damaged ({done} images done, in batches of {batch})")
        if state["run"] != run_mark(self.info) or {*state["methods"]} != {*self.info.methods}:
            raise DamagedFileError(f"{path}: the checkpoint of another run than this folder's")
        return Checkpoint(done, self._parts(path, done, state["parts"]), state["methods"], state["parts"])

    def _parts(self, checkpoint: Path, done: int, digests: Mapping[int, str]) -> list[Columns]:
        """The parts from the first image to the last that the checkpoint covers."""
        parts: list[Columns] = []
        begin = 0
        while begin < done:
            path = self.folder / _part_name(begin)
            parts.append(self._part(path, begin))
            digest = file_digest(path)
            if digest is None or digests.get(begin) != digest.hash:
                raise DamagedFileError(f"{path}: not the part that {checkpoint.name} was written with")
            begin += len(parts[-1]["label"])
        if begin != done or len(parts) != len(digests):
            raise DamagedFileError(f"{checkpoint}: damaged ({done} images done, in parts of {begin})")
        return parts

    def _part(self, path: Path, begin: int) -> Columns:
        names = (*IMAGE_COLUMNS, *self.info.methods)
        header, table = read_table(path, PartHeader, names)
        if header.run != self.info:
            raise InputError(f"{path}: part of another run than this folder's")
        part = {name: table[name].to_numpy().astype(np.int64) for name in names}
        if len(table) == 0 or not np.array_equal(part["position"], np.arange(begin, begin + len(table))):
            raise InputError(f"{path}: expected images from position {begin} on")
        return part


def _part_name(begin: int) -> str:
    return f"part-{begin:010d}.parquet"


def run_mark(info: StreamRunInfo) -> str:
    """A digest of what a run is, by which its files know it."""
    return hashlib.blake2b(json.dumps(as_json(info), sort_keys=True).encode(), digest_size=16).hexdigest()
