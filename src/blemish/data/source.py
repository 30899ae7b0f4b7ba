"""What is classified: labelled images, each with a name and with the id that fixes its random draws."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from blemish.core.errors import InputError, refused
from blemish.core.printable import as_text
from blemish.core.rng import hash_id
from blemish.data.blocks import BlockReader

Labelling = Literal["given", "order", "names", "mapping", "imagenet"]
"""Where labels come from: from the data itself, from the order of class folders, or of the class names that a table
states, from a mapping, from WordNet ids."""


@dataclass(frozen=True)
class Source:
    """Labelled images that are decoded one at a time.

    ``read(i)`` decodes image ``i`` as a picture of mode RGB, or L where ``channels`` is 1. ``labels`` number the
    classes a model is asked for. ``groups`` names, for each label, the model's classes that count as it, where they are
    not the model's own classes in order: sets that cover part of them, or merge some.

    ``read`` may be called from several threads at a time. ``stamp(i)`` says, without decoding it, which image that is:
    the file, the place in it, its size and time of change; a source without it is never read from a cache of another
    run. No two images have the same name. ``note`` is for people: what was left out, for instance. ``reopen`` opens the
    same images on another machine; it has to be picklable. ``labelling`` says where labels come from: those of class
    folders in ``order``, and of ``names``, are fixed by `fit_labels`, once the number of a model's outputs is known.
    ``class_names`` are what people call the classes, by label, where they were told; they decide nothing.
    """

    name: str
    names: Sequence[str]
    ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    read: Callable[[int], Image.Image]
    classes: tuple[str, ...] | None = None
    groups: tuple[tuple[int, ...], ...] | None = None
    channels: int = 3
    stamp: Callable[[int], str] | None = None
    note: str | None = None
    reopen: Callable[[], Source] | None = None
    labelling: Labelling = "given"
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse a source that contradicts itself; escape what result files cannot hold in names."""
        object.__setattr__(self, "name", as_text(self.name))
        object.__setattr__(self, "names", _texts(self.names))
        for field in ("classes", "class_names"):
            if getattr(self, field) is not None:
                object.__setattr__(self, field, tuple(_texts(getattr(self, field))))
        count = len(self.names)
        if count == 0:
            raise InputError(f"{self.name}: no images in it")
        if len(set(self.names)) < count:
            twice, times = Counter(self.names).most_common(1)[0]
            raise InputError(f"{self.name}: {times} images are called {twice!r}; expected names that differ")
        for field, values in (("ids", self.ids), ("labels", self.labels)):
            if values.shape != (count,):
                raise InputError(f"{self.name}: {field} of shape {values.shape} for {count} images; expected one each")
        if int(self.labels.min()) < 0:
            raise InputError(f"{self.name}: label {int(self.labels.min())}; expected 0 or more")
        known = len(self.groups) if self.groups is not None else None if self.classes is None else len(self.classes)
        if known is not None and int(self.labels.max()) >= known:
            raise InputError(
                f"{self.name}: label {int(self.labels.max())} of {known} classes; expected 0 … {known - 1}"
            )
        if self.class_names is not None and len(self.class_names) <= int(self.labels.max()):
            raise InputError(
                f"{self.name}: {len(self.class_names)} class names for label {int(self.labels.max())}; expected one "
                "for every class"
            )

    def __len__(self) -> int:
        return len(self.names)

    @property
    def in_order(self) -> bool:
        """Whether labels number the classes among themselves, and mean nothing to a model yet."""
        return self.labelling in ("order", "names")

    def __reduce__(self) -> tuple[Any, ...]:
        if self.reopen is None:
            raise InputError(
                f"{self.name}: these images cannot be opened by other processes; "
                "expected a path, or a source with a way to reopen it"
            )
        kept = [field.name for field in fields(self) if field.name not in ("read", "stamp")]
        return _reopened, ({name: getattr(self, name) for name in kept},)

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> Source:
        """The images at these positions, with their names, ids and labels."""
        index = np.asarray(rows, dtype=np.int64)
        read, stamp = self.read, self.stamp
        return replace(
            self,
            names=tuple(self.names[i] for i in index),
            ids=self.ids[index],
            labels=self.labels[index],
            read=read.take(index) if isinstance(read, BlockReader) else lambda i: read(int(index[i])),
            stamp=None if stamp is None else lambda i: stamp(int(index[i])),
            reopen=None if self.reopen is None else partial(_part, self.reopen, index),
        )


def _texts(names: Sequence[str]) -> Sequence[str]:
    return names if all(map(str.isascii, names)) else tuple(map(as_text, names))


def _reopened(fields: dict[str, Any]) -> Source:
    """A source opened again in another process, with the fields that it had here."""
    source: Source = fields["reopen"]()
    return replace(source, **fields)


def _part(reopen: Callable[[], Source], rows: NDArray[np.int64]) -> Source:
    return reopen().take(rows)


def file_stamp(path: str | os.PathLike[str], detail: str = "") -> str:
    """A file's path, size and time of change, and how it is read."""
    name = os.fspath(path)
    with refused(f"{name}: cannot be read", OSError, ValueError):
        status = Path(name).stat()
    return f"{Path(name).absolute()}|{status.st_size}|{status.st_mtime_ns}|{detail}"


def check_unchanged(path: str | os.PathLike[str], stamp: str) -> None:
    """Refuse to go on with a file that is not any more what it was when its stamp was taken."""
    if file_stamp(path) != stamp:
        raise InputError(f"{os.fspath(path)}: was changed while it was being read; begin again when it is complete")


def stratified_order(labels: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """An order of the images in which every beginning holds the classes in their proportions, as nearly as it can.

    Within a class the order is a hash of the ids: it depends neither on the order of the files nor on other classes.
    """
    shuffled = np.array([hash_id(f"stratum {number}") for number in ids.tolist()], dtype=np.int64)
    rank = np.empty(len(labels))
    for label in np.unique(labels).tolist():
        members = np.flatnonzero(labels == label)
        members = members[np.argsort(shuffled[members], kind="stable")]
        # Classes take turns at their own phase, or every beginning would prefer the same ones.
        phase = (hash_id(f"class {label}") % 2**32) / 2**32
        rank[members] = (np.arange(len(members)) + phase) / len(members)
    return np.lexsort((shuffled, rank)).astype(np.int64)
