"""Conditions in parts: which are measured already, which are left, and the records of all of them together.

::

    OUT/<model>/unfinished/<condition>.<stage>/<batch size>-<first batch>-<last batch>.parquet

A part is a file of records like any other. When all are there they become the file of the condition, and are removed.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.evaluation.answers import content_of, join_any, read_any
from blemish.evaluation.info import RecordsHeader

UNFINISHED = "unfinished"

Span = tuple[int, int]
"""Batches from the first to the last, which is not included."""


def spans_left(count: int, measured: Sequence[Span], shares: int) -> list[tuple[int, Span]]:
    """What is left of ``count`` batches, cut at the borders of equal ``shares``; each with its share's number.

    >>> spans_left(10, [(2, 5)], 2)
    [(0, (0, 2)), (1, (5, 10))]
    """
    borders = [share * count // shares for share in range(shares + 1)]
    missing = np.ones(count, dtype=np.bool_)
    for first, last in measured:
        missing[first:last] = False
    spans: list[tuple[int, Span]] = []
    for share, (first, last) in enumerate(itertools.pairwise(borders)):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], missing[first:last], [False]]).astype(np.int8)))
        spans += [(share, (first + int(a), first + int(b))) for a, b in edges.reshape(-1, 2)]
    return spans


def remove_parts(folder: Path, stage: int) -> None:
    """Remove what is left of a stage whose conditions are all there: a run may have been killed before it did so."""
    for parts in (folder / UNFINISHED).glob(f"*.{stage}"):
        shutil.rmtree(parts, ignore_errors=True)
    with contextlib.suppress(OSError):
        (folder / UNFINISHED).rmdir()


@dataclass(frozen=True)
class Parts:
    """The parts of one condition in the folder of a run; ``header`` is that of its records."""

    folder: Path
    condition: Condition
    stage: int
    size: int
    header: RecordsHeader

    @property
    def parts_folder(self) -> Path:
        """Where the files of the parts are."""
        return self.folder / UNFINISHED / f"{self.condition.slug}.{self.stage}"

    def path(self, span: Span) -> Path:
        """The file of a part."""
        return self.parts_folder / f"{self.size}-{span[0]}-{span[1]}.parquet"

    def measured(self) -> list[Span]:
        """The parts that were measured in the way of this run; others, and damaged ones, are removed."""
        spans: list[Span] = []
        for path in sorted(self.parts_folder.glob("*")):
            span = self._span(path)
            if span is None or any(first < span[1] and span[0] < last for first, last in spans):
                path.unlink(missing_ok=True)
            else:
                spans.append(span)
        return sorted(spans)

    def _span(self, path: Path) -> Span | None:
        try:
            # All of it is read, because a damaged one would only be noticed when the others are done.
            header = read_any(path).header
        except InputError:
            return None
        if header.part is None:
            return None
        size, first, last = header.part
        same = replace(header, part=None) == self.header and size == self.size and path == self.path((first, last))
        return (first, last) if same else None

    def write(self, span: Span, content: bytes) -> None:
        """Keep a part."""
        write_bytes(self.path(span), content, destination=self.folder)

    def joined(self, names: Sequence[str]) -> bytes:
        """The records of all parts in the order of the images' names."""
        records = join_any([read_any(self.path(span)) for span in self.measured()])
        row = {name: number for number, name in enumerate(names)}
        # Frames of an image stay in their order, because equal ones keep theirs.
        order = np.argsort([row[name] for name in records.images.tolist()], kind="stable")
        return content_of(replace(records.take(order), header=self.header))

    def remove(self) -> None:
        """Remove the parts, which are in the records of the condition now."""
        shutil.rmtree(self.parts_folder, ignore_errors=True)
