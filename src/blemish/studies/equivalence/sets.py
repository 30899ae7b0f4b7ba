"""The images of somebody else: a corrupted set on disk, or a file with an array per condition."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from blemish.benchmarks.condition import Condition, parse_condition
from blemish.core.errors import InputError
from blemish.core.reading import is_folder, is_there
from blemish.corruptions.catalog import Catalog, catalog
from blemish.data.array_source import block_source
from blemish.data.arrays import check_images, member_names, read_members
from blemish.data.folders import ClassMapping
from blemish.data.source import Source
from blemish.data.stored import StoredSet, open_stored

_LABELS = ("labels", "y")
_JPEG = (".jpg", ".jpeg")


def open_other(path: str | os.PathLike[str], clean: Source, *, mapping: ClassMapping | None = None) -> StoredSet:
    """A folder that `open_stored` takes, or an ``.npz`` file with an array of images for each condition.

    The arrays of a file are named as conditions are written (``fog@3``) and hold a copy of every image of ``clean``,
    in its order.
    """
    where = Path(path)
    if is_folder(where):
        return open_stored(where, mapping=mapping)
    if not is_there(where):
        raise InputError(f"{where}: no such file or folder; expected a corrupted set")
    if mapping is not None:
        raise InputError(f"{where}: an array file, whose images are those of {clean.name}; expected no mapping")
    return StoredSet(where.stem, "file", {name: _opener(where, name, clean) for name in _members(where)})


def _members(path: Path) -> list[str]:
    names = [name for name in member_names(path) if name not in _LABELS]
    if not names:
        raise InputError(f"{path}: no arrays of images in it; expected some with names such as fog@3")
    return sorted(names)


def _opener(path: Path, name: str, clean: Source) -> Callable[[], Source]:
    def source() -> Source:
        images = read_members(path, (name,))[name]
        check_images(f"{path}: {name}", images)
        if len(images) != len(clean):
            raise InputError(
                f"{path}: {len(images)} images of {name}, but {len(clean)} in {clean.name}; expected a copy of each, "
                "in the same order"
            )
        block = block_source(path, images, clean.labels)
        return replace(block, names=clean.names, ids=clean.ids, classes=clean.classes, groups=clean.groups)

    return source


def chosen_cells(
    other: StoredSet, patterns: Sequence[str] = (), *, catalog: Catalog = catalog
) -> tuple[list[Condition], list[str]]:
    """The conditions of a set that can be made here, those that match a pattern if there are any; and the others."""
    cells, unknown = [], []
    for text in other.conditions():
        try:
            condition = parse_condition(text, catalog=catalog)
        except InputError:
            unknown.append(text)
            continue
        if condition.steps and not condition.is_sequence:
            cells.append(condition)
    if patterns:
        for pattern in patterns:
            if not any(_matches(condition, pattern) for condition in cells):
                there = ", ".join(map(str, cells[:4])) or "nothing that can be made here"
                raise InputError(f"nothing in {other.name} is called {pattern!r}; there are {there} … ({len(cells)})")
        cells = [condition for condition in cells if any(_matches(condition, pattern) for pattern in patterns)]
        unknown = []
    if not cells:
        raise InputError(
            f"{other.name}: none of {', '.join(other.conditions()[:4])} … ({len(other.conditions())}) is a corruption "
            "of the catalog at a severity; expected names such as fog@3"
        )
    return cells, unknown


def _matches(condition: Condition, pattern: str) -> bool:
    return fnmatchcase(str(condition), pattern) or fnmatchcase(condition.group, pattern)


def fair_storage(other: StoredSet, cell: Condition) -> str:
    """How ours have to be stored to be compared with a set: as JPEG where its files are JPEG, else as they are."""
    names = other.source(str(cell)).names if other.kind == "tree" else ()
    return "jpeg85" if names and all(name.lower().endswith(_JPEG) for name in names) else "raw"
