"""Entries of leaderboards: a folder with ``entry.json`` and ``bits.xz``, or a file of published numbers; sealed.

The seal is the SHA-256 of everything that an entry says, the digest of its bits included. It tells whether an entry is
the one that somebody quoted; it cannot tell whether that was honest: `blemish leaderboard verify` computes the numbers
again from the bits, and with ``--rerun`` the bits from the model.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError, about
from blemish.core.files import write_bytes
from blemish.core.reading import is_folder, read_bytes, read_json
from blemish.core.typed import as_json, optional_field, read_typed
from blemish.evaluation.info import BenchmarkInfo, DataInfo, ProtocolInfo, RecordsHeader, RunInfo
from blemish.evaluation.records import TOP, Records
from blemish.evaluation.runs import Run
from blemish.metrics.imports import PublishedTable, TableInfo, make_table
from blemish.metrics.scores import as_baseline
from blemish.models.base import ModelInfo
from blemish.studies.leaderboard.bits import Bits, packed, unpacked
from blemish.version import VERSION

FORMAT = 1
ENTRY_FILE = "entry.json"
BITS_FILE = "bits.xz"
TABLE_SUFFIX = ".entry.json"
_SEAL = "seal"


@dataclass(frozen=True)
class Speed:
    """How many images a second somebody measured, and on what: only numbers ``on`` the same are comparable."""

    images_per_second: float
    on: str


@dataclass(frozen=True)
class ModelHeader:
    """What ``entry.json`` says of a model: all of its run file that decides numbers, and the numbers themselves."""

    format: int
    kind: Literal["model"]
    model: ModelInfo
    benchmark: BenchmarkInfo
    protocol: ProtocolInfo
    data: DataInfo
    stages: int
    until: bool
    bits: str
    claims: dict[str, float]
    made_with: dict[str, str]
    seal: str = ""
    speed: Speed | None = optional_field()
    link: str = optional_field("")
    notes: str = optional_field("")


@dataclass(frozen=True)
class TableHeader:
    """What a file of published numbers says: about them, and a dictionary of texts for each model."""

    format: int
    kind: Literal["table"]
    table: TableInfo
    rows: tuple[dict[str, str], ...]
    seal: str = ""


@dataclass(frozen=True)
class ModelEntry:
    """An entry whose numbers can be computed again."""

    path: Path
    header: ModelHeader
    bits: Bits

    @property
    def name(self) -> str:
        """The model's name."""
        return self.header.model.name

    @cached_property
    def run(self) -> EntryRun:
        """Its outcomes as those of a run, for everything that reads runs; there are no confidences in it."""
        header = self.header
        data = (header.data,) * header.stages
        info = RunInfo(
            header.benchmark, header.protocol, header.model, header.data, data, header.until, made_with=header.made_with
        )
        return EntryRun(self.path, info, self.bits)


@dataclass(frozen=True)
class TableEntry:
    """An entry of published numbers, per cell or claimed."""

    path: Path
    header: TableHeader

    def table(self, level: float = 0.95) -> PublishedTable:
        """The numbers, with intervals of this level."""
        return make_table(self.header.table, self.header.rows, level=level)


Entry = ModelEntry | TableEntry


@dataclass(frozen=True, repr=False)
class EntryRun(Run):
    """A run of which only outcomes are known."""

    bits: Bits

    def finished(self, condition: Condition) -> bool:
        """Whether there are outcomes of a condition."""
        return condition in self.conditions

    def records(self, condition: Condition) -> Records:
        """Records in which a right answer is the label; which class a wrong one was is not known: the next is taken.

        Answers are then spread over classes as labels are, which is what chance is reckoned from.
        """
        names, labels, correct = self.bits.names, self.bits.labels, self.correct(condition)
        present, which = np.unique(labels, return_inverse=True)
        others = np.roll(present, 1) if len(present) > 1 else present - 1
        top5 = np.full((len(names), TOP), -1, dtype=np.int32)
        top5[:, 0] = np.where(correct, labels, others[which])
        nothing = np.zeros(len(names), dtype=np.float32)
        header = RecordsHeader(str(condition), model=self.info.model)
        return Records(header, names, labels, top5, nothing, nothing)

    def correct(self, condition: Condition) -> NDArray[np.bool_]:
        """Whether each image was answered correctly."""
        return self.bits.correct[:, self.conditions.index(condition)]


def digest(content: bytes) -> str:
    """The digest of a file, as entries write it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def seal_of(content: dict[str, Any]) -> str:
    """The digest of everything an entry says but its seal, whatever the order or the spaces it is written with."""
    rest = {key: value for key, value in content.items() if key != _SEAL}
    return digest(json.dumps(rest, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode("utf-8"))


def _sealed(header: ModelHeader | TableHeader) -> tuple[bytes, str]:
    """The content of the file, with its seal."""
    content = json.loads(json.dumps({"made_with_blemish": VERSION, **as_json(header)}, ensure_ascii=False))
    seal = content[_SEAL] = seal_of(content)
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode("utf-8"), seal


def write_model_entry(folder: Path, header: ModelHeader, bits: Bits) -> ModelEntry:
    """Write an entry; the file that seals it comes last, so that a folder without it is none."""
    content = packed(bits)
    header = replace(header, bits=digest(content))
    text, seal = _sealed(header)
    with about(str(folder)):
        _check(header, bits)
    (folder / ENTRY_FILE).unlink(missing_ok=True)  # or it would be taken for that of the new bits
    write_bytes(folder / BITS_FILE, content)
    write_bytes(folder / ENTRY_FILE, text)
    return ModelEntry(folder, replace(header, seal=seal), bits)


def write_table_entry(path: Path, info: TableInfo, rows: tuple[dict[str, str], ...]) -> TableEntry:
    """Write published numbers as an entry; what makes no sense is refused first."""
    header = TableHeader(FORMAT, "table", info, rows)
    text, seal = _sealed(header)
    entry = TableEntry(path, replace(header, seal=seal))
    assert entry.table()
    write_bytes(path, text)
    return entry


def read_entry(path: str | os.PathLike[str]) -> Entry:
    """An entry in a folder or file. One that was changed after it was sealed is refused."""
    source = Path(path)
    file = source / ENTRY_FILE if is_folder(source) else source
    content = read_json(file)
    if not isinstance(content, dict) or content.get("kind") not in ("model", "table") or _SEAL not in content:
        raise InputError(f"{file}: not an entry of a leaderboard; expected one that blemish leaderboard made")
    if content.get("format") != FORMAT:
        raise InputError(f"{file}: an entry of format {content.get('format')}; this version reads format {FORMAT}")
    if content[_SEAL] != seal_of(content):
        raise InputError(f"{file}: was changed after it was sealed (its content does not fit the seal in it)")
    with about(str(file)):
        if content["kind"] == "table":
            table = TableEntry(file, read_typed(TableHeader, content))
            assert table.table()
            return table
        header = read_typed(ModelHeader, content)
        entry = ModelEntry(file.parent, header, _read_bits(file.parent / BITS_FILE, header))
        check_conditions(entry.run)
    return entry


def _read_bits(file: Path, header: ModelHeader) -> Bits:
    content = read_bytes(file)
    if digest(content) != header.bits:
        raise InputError(f"{file}: was changed after it was sealed (its digest is not that in {ENTRY_FILE})")
    with about(str(file)):
        bits = unpacked(content)
        _check(header, bits)
        return bits


def _check(header: ModelHeader, bits: Bits) -> None:
    """Refuse bits that cannot be those of the header."""
    expected = (header.data.images, len(header.benchmark.conditions))
    if bits.correct.shape != expected:
        raise InputError(f"bits of shape {bits.correct.shape}; expected {expected}, images by conditions")
    if not 1 <= header.stages <= header.data.images:
        raise InputError(f"stages is {header.stages}; expected 1 or more, and no more than there are images")


def check_conditions(run: Run) -> None:
    """Refuse conditions of which there can be no bits, or no numbers."""
    conditions = run.conditions
    if CLEAN not in conditions or len(conditions) < 2:
        raise InputError("expected clean images and at least one other condition in benchmark.conditions")
    if len(set(conditions)) < len(conditions):
        raise InputError("a condition twice in benchmark.conditions")
    for condition in conditions:
        if condition.is_sequence or condition.other is not None:
            raise InputError(f"{condition} in benchmark.conditions; expected corruptions of the benchmark's own images")
        if condition != CLEAN:
            run.family(condition)
    as_baseline(run, None)


def find_entries(board: Path) -> list[Entry]:
    """The entries of a leaderboard, in the order of their names: folders, and files that end in .entry.json."""
    if not is_folder(board):
        raise InputError(f"{board}: no such folder; expected a leaderboard, such as blemish leaderboard add makes")
    if (board / ENTRY_FILE).is_file():
        return [read_entry(board)]
    places = sorted(
        child for child in board.iterdir() if (child / ENTRY_FILE).is_file() or child.name.endswith(TABLE_SUFFIX)
    )
    if not places:
        raise InputError(f"{board}: no entries in it; blemish leaderboard add makes them from results")
    return [read_entry(child) for child in places]
