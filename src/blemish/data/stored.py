"""Corrupted sets as they are published, on disk: the tree of ImageNet-C, and the arrays of CIFAR-10-C."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from blemish.core.errors import InputError, UnknownNameError, notify
from blemish.core.reading import is_folder, is_there
from blemish.corruptions.catalog import catalog
from blemish.corruptions.severity import severity_text
from blemish.data.array_source import block_source
from blemish.data.arrays import check_labels, read_arrays, read_labels
from blemish.data.folders import ClassMapping, class_folders, folder_source, in_class_order, subfolders
from blemish.data.images import Images
from blemish.data.manifest import MANIFEST, read_manifest
from blemish.data.pictures import PICTURE_SUFFIXES
from blemish.data.source import Source

# LAION-C's folders are called intensity_level_1 … 5.
_SEVERITY = re.compile(r"(?:intensity_level_)?(\d+(?:\.\d+)?)")
_LABELS = "labels.npy"
_PUBLISHED_SEVERITIES = (1.0, 2.0, 3.0, 4.0, 5.0)


@dataclass(frozen=True)
class StoredSet:
    """A corrupted set on disk: a source for every condition, whose images are named as the clean ones.

    ``reopen`` opens the same set in another process.
    """

    name: str
    kind: str
    _sources: dict[str, Callable[[], Source]]
    reopen: Callable[[], StoredSet] | None = None

    def conditions(self) -> list[str]:
        """What is there, as texts such as ``fog@3``, sorted by corruption and severity."""
        return list(self._sources)

    def holds(self, condition: str) -> bool:
        """Whether there are images of a condition."""
        return self._key(condition) is not None

    def shared(self, source: Source) -> Source:
        """The images of a source that are in the set, by the first of its conditions; the others with a notice."""
        there = self._sources[next(iter(self._sources))]()
        rows = [row for row, stored_row in enumerate(_found(there, source)) if stored_row is not None]
        if not rows:
            raise InputError(f"{self.name}: none of the {len(source)} images of {source.name} is in it")
        if len(rows) == len(source):
            return source
        notify(f"{self.name}: holds {len(rows):,} of the {len(source):,} images of {source.name}; others are left out")
        return source.take(rows)

    def _key(self, condition: str) -> str | None:
        """What a condition is called here. Published sets have no prefixes: ``mosaic`` is ``laion:mosaic``."""
        bare = condition.rpartition(":")[2]
        # But brightness is ImageNet-C's, and never noc:brightness.
        known = condition if bare.partition("@")[0] in catalog else bare
        return next((name for name in (condition, known) if name in self._sources), None)

    def source(self, condition: str, *, like: Source | Images | None = None) -> Source:
        """The images of a condition; with ``like``, those of that source, in its order and under its names."""
        key = self._key(condition)
        if key is None:
            some = ", ".join(self.conditions()[:4])
            raise UnknownNameError(
                f"{self.name}: no images of {condition!r}; there are {some} … ({len(self._sources)})"
            )
        images = replace(self._sources[key](), name=f"{self.name} {condition}")
        return images if like is None else paired(images, like)


def open_stored(path: str | os.PathLike[str], *, mapping: ClassMapping | None = None) -> StoredSet:
    """A corrupted set: a tree ``<corruption>/<severity>/<class>/<file>``, or arrays ``<corruption>.npy``.

    The tree may have a level of families above, as the published archives do (``blur/defocus_blur/1/…``). Arrays hold
    a block of images per severity, 1 to 5, and stand beside ``labels.npy``. ``mapping`` is that of `folder_source`.
    """
    root = Path(path)
    reopen = partial(open_stored, path, mapping=mapping)
    if not is_folder(root):
        raise InputError(f"{root}: no such folder; expected a corrupted set")
    if is_there(root / _LABELS):
        if mapping is not None:
            raise InputError(f"{root}: holds arrays with labels; expected no mapping")
        return StoredSet(root.resolve().name, "arrays", _array_sources(root), reopen)
    folders = _severity_folders(root)
    if not folders:
        raise InputError(
            f"{root}: no corrupted set; looked for <corruption>/<severity>/<class>/<file>, "
            f"and for <corruption>.npy beside {_LABELS}"
        )
    return StoredSet(root.resolve().name, "tree", _tree_sources(folders, mapping), reopen)


def is_stored(root: Path) -> bool:
    """Whether a folder looks like a corrupted set."""
    return is_folder(root) and (is_there(root / _LABELS) or bool(_severity_folders(root)))


def _severity_folders(root: Path) -> dict[tuple[str, float], Path]:
    """The folder of each corruption and severity, with or without a level of families."""
    folders: dict[tuple[str, float], Path] = {}
    for outer in subfolders(root):
        for corruption in [outer] if _severities(outer) else subfolders(outer):
            for severity, folder in _severities(corruption).items():
                first = folders.setdefault((corruption.name, severity), folder)
                if first != folder:
                    name = f"{corruption.name} of severity {severity_text(severity)}"
                    raise InputError(f"{first} and {folder} both hold {name}")
    return dict(sorted(folders.items()))


def _severities(folder: Path) -> dict[float, Path]:
    """The severity folders of a corruption: all its folders are numbers up to 5, and each holds folders of classes."""
    levels = {entry: _SEVERITY.fullmatch(entry.name) for entry in subfolders(folder)}
    if not all(match and 0 < float(match[1]) <= 5 for match in levels.values()):
        return {}
    return {float(match[1]): entry for entry, match in levels.items() if match and subfolders(entry)}


def _tree_sources(
    folders: dict[tuple[str, float], Path], mapping: ClassMapping | None
) -> dict[str, Callable[[], Source]]:
    # The classes of all conditions together: a class that one of them lacks must not move the labels of the others.
    order = in_class_order({name for folder in folders.values() for name in class_folders(folder)})

    def open_folder(folder: Path) -> Source:
        source = folder_source(folder, mapping=order if mapping is None else mapping)
        return replace(source, labelling="order") if mapping is None else source

    return {
        f"{name}@{severity_text(severity)}": partial(open_folder, folder)
        for (name, severity), folder in folders.items()
    }


def _array_sources(root: Path) -> dict[str, Callable[[], Source]]:
    severities = _array_severities(root)
    files = sorted(path for path in root.glob("*.npy") if path.name != _LABELS)
    if not files:
        raise InputError(f"{root}: {_LABELS}, but no <corruption>.npy beside it")
    return {
        f"{path.stem}@{severity_text(severity)}": partial(_block, path, root / _LABELS, block, len(severities))
        for path in files
        for severity, block in sorted((severity, block) for block, severity in enumerate(severities))
    }


def _array_severities(root: Path) -> tuple[float, ...]:
    """The severities of the blocks: 1 to 5 as published, or what the manifest of a set of ours says."""
    manifest = root / MANIFEST
    if not is_there(manifest):
        return _PUBLISHED_SEVERITIES
    listed = read_manifest(manifest).protocol.severities
    severities = tuple(map(float, listed))
    if not severities or len(set(severities)) != len(severities):
        raise InputError(f"{manifest}: severities {list(listed)}; expected each of them once")
    return severities


def _block(path: Path, labels: Path, block: int, blocks: int) -> Source:
    images = read_arrays(path).images
    count, rest = divmod(len(images), blocks)
    if rest or count == 0:
        raise InputError(f"{path}: {len(images)} images; expected a multiple of {blocks}, one block per severity")
    start = block * count
    given = read_labels(labels)
    if len(given) == len(images):
        given = given[start : start + count]
    elif len(given) != count:
        raise InputError(f"{labels}: {len(given)} labels; expected {count}, or {len(images)}, for {path.name}")
    return block_source(path, images[start : start + count], check_labels(str(labels), given, count), start=start)


def paired(stored: Source, like: Source | Images) -> Source:
    """The images of ``stored`` that ``like`` holds, in its order and with its names and ids.

    An image without one of its own name is looked for without the suffix: a copy of ``x.JPEG`` may be stored as
    ``x.png``. One that is missing, may be any of several, or has another label, is refused. The labels of class
    folders that nobody mapped are those of ``like``: an image of the same name is in the same folder.
    """
    same = stored.take(_rows(stored, like))
    if stored.labelling == "order":
        same = replace(same, labels=like.labels, classes=None)
    different = np.flatnonzero(same.labels != like.labels)
    if len(different):
        first = int(different[0])
        raise InputError(
            f"{stored.name}: {same.names[first]} has the label {int(same.labels[first])}, "
            f"but {int(like.labels[first])} in {like.name}, as {len(different)} in all; were the classes mapped alike?"
        )
    if like.groups is not None:  # labels stand for several classes of a model, here as there
        same = replace(same, classes=like.classes, groups=like.groups)
    return replace(same, names=like.names, ids=like.ids)


def _rows(stored: Source, like: Source | Images) -> list[int]:
    rows = _found(stored, like)
    missing = [name for name, row in zip(like.names, rows, strict=True) if row is None]
    if missing:
        raise InputError(
            f"{stored.name}: {len(missing)} of {len(like.names)} images are not in it, the first is {missing[0]}"
        )
    return [row for row in rows if row is not None]


def _found(stored: Source, like: Source | Images) -> list[int | None]:
    """Where the images of ``like`` are among the stored ones; None where they are not."""
    exact = {name: row for row, name in enumerate(stored.names)}
    names = [name if name in exact else other for name, other in zip(like.names, _in_superclasses(like), strict=True)]
    stems = {_stem(name): row for name, row in exact.items()}
    in_stored, in_like = Counter(map(_stem, stored.names)), Counter(map(_stem, names))
    for name in names:
        stem = _stem(name)
        if name not in exact and stem in stems and (in_stored[stem] > 1 or in_like[stem] > 1):
            raise InputError(
                f"{stored.name}: no {name} in it, and {stem} with other suffixes is ambiguous "
                f"({in_stored[stem]} in it, {in_like[stem]} in {like.name}); expected one of each, or the same names"
            )
    rows = [exact.get(name, stems.get(_stem(name))) for name in names]
    if twice := [row for row, times in Counter(rows).items() if row is not None and times > 1]:
        raise InputError(f"{stored.name}: {stored.names[twice[0]]} may be several images of {like.name}")
    return rows


def _in_superclasses(like: Source | Images) -> Sequence[str]:
    """What images are called in a set with a folder for each superclass; otherwise their names."""
    if like.groups is None or like.classes is None:
        return like.names
    labels = [like.classes[label] for label in like.labels.tolist()]
    return [f"{label}/{name.rpartition('/')[2]}" for label, name in zip(labels, like.names, strict=True)]


def _stem(name: str) -> str:
    stem, dot, suffix = name.rpartition(".")
    return stem if f"{dot}{suffix.lower()}" in PICTURE_SUFFIXES else name
