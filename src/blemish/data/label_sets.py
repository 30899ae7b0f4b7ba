"""Images that have several labels each: a row of yes and no beside every image, as ChestMNIST has it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.data.array_source import block_source
from blemish.data.arrays import read_label_rows
from blemish.data.source import Source


@dataclass(frozen=True)
class LabelTruth:
    """Which of a list of labels each image has: a row for each name, (N, K)."""

    names: tuple[str, ...]
    rows: NDArray[np.bool_]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.names)}

    @property
    def count(self) -> int:
        """How many labels an image may have."""
        return int(self.rows.shape[1])

    def holds(self, name: str) -> bool:
        """Whether the labels of an image are known."""
        return name in self._places

    def of(self, names: Sequence[str]) -> NDArray[np.bool_]:
        """The rows of some images."""
        return self.rows[[self._places[name] for name in names]]

    @cached_property
    def digest(self) -> str:
        """What tells this truth from another one."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.names, self.rows.shape)).encode("utf-8", "surrogateescape"))
        digest.update(np.packbits(self.rows).tobytes())
        return digest.hexdigest()


def labelled_arrays(
    path: str | os.PathLike[str], labels: str | os.PathLike[str] | None = None
) -> tuple[Source, LabelTruth]:
    """The images of an array file, with their rows of labels out of the same file or of one of their own."""
    images, rows = read_label_rows(path, labels=labels)
    where = os.fspath(path if labels is None else labels)
    if rows.ndim != 2 or len(rows) != len(images) or rows.shape[1] < 2:
        raise InputError(
            f"{where}: labels of shape {rows.shape} for {len(images)} images; expected a row of several labels for each"
        )
    if not np.isin(rows, (0, 1)).all():
        raise InputError(f"{where}: labels besides 0 and 1; expected 1 where an image has the label, and 0 elsewhere")
    source = block_source(path, images, np.zeros(len(images), dtype=np.int64))
    return source, LabelTruth(tuple(source.names), rows.astype(np.bool_))
