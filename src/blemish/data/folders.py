"""Labelled pictures in folders: a folder per class, or a flat folder with a table of labels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
from PIL import Image

from blemish.core.class_names import IMAGENET, imagenet_names
from blemish.core.csv_files import read_csv
from blemish.core.errors import InputError, refused
from blemish.core.printable import first_few
from blemish.core.reading import is_folder, is_there, parse_json, read_text
from blemish.corruptions.by_name import hint
from blemish.data.classes import imagenet_indices, imagenet_wnids
from blemish.data.pictures import PICTURE_SUFFIXES, list_pictures, picture_id, read_picture
from blemish.data.source import Source, file_stamp

LABELS_FILE = "labels.csv"

_COLUMNS = ("file", "class_index")
_INDEX = re.compile(r"0*[0-9]{1,9}")

ClassMapping = str | os.PathLike[str] | Mapping[str, int] | Sequence[str]
"""What gives class folders their indices: a file, ``imagenet``, indices by folder, or the folders in class order."""


def folder_source(path: str | os.PathLike[str], *, mapping: ClassMapping | None = None) -> Source:
    """The pictures of a folder with one folder per class, as torchvision's ``ImageFolder`` has them.

    A label is the class folder's place among the sorted names; if all names are whole numbers, they are sorted as
    numbers. Once the model is known, `blemish.data.labels` confirms this order or takes ImageNet's. ``mapping`` gives
    each folder its index: a JSON file ``{"folder": index}``, a text file with one folder per line in class order,
    ``imagenet`` for WordNet ids or the English names of ImageNet's classes, or the same as a dictionary or a list. A
    folder with ``labels.csv`` in it is read by `table_source`.
    """
    root = Path(path)
    if is_there(root / LABELS_FILE):
        if mapping is not None:
            raise InputError(f"{root}: {LABELS_FILE} gives the class indices; expected no mapping")
        return table_source(root)
    folders = class_folders(root)
    indices = folder_indices(str(root), folders, mapping)
    names = [name for name in list_pictures(root) if "/" in name]
    if not names:
        raise InputError(f"{root}: no pictures in its {len(folders)} folders; looked for {', '.join(PICTURE_SUFFIXES)}")
    labels = [indices[name.partition("/")[0]] for name in names]
    empty = len(folders) - len({name.partition("/")[0] for name in names})
    note = f"{empty} of {len(folders)} class folders hold no pictures" if empty else None
    source = picture_source(root, names, labels, classes=mapped_classes(indices, mapping), note=note)
    return replace(source, labelling="order" if mapping is None else "mapping")


def table_source(path: str | os.PathLike[str], labels: str | os.PathLike[str] | None = None) -> Source:
    """The pictures of a folder that a table lists: ``labels.csv`` in it, with the columns ``file`` and ``class_index``.

    Other columns are left alone. Files are named relative to the folder, and have to lie in it.
    """
    root = Path(path)
    table = Path(labels) if labels is not None else root / LABELS_FILE
    names: dict[str, int] = {}
    for line, (file, index) in enumerate(_rows(table), start=2):
        where = f"{table}, line {line}"
        name = str(PurePosixPath(file))
        parts = PureWindowsPath(file)  # splits at both kinds of slashes, and knows drives
        if name == "." or parts.drive or parts.root or ".." in parts.parts:
            raise InputError(f"{where}: file {file!r}; expected a picture below {root}")
        if not _INDEX.fullmatch(index.strip()):
            raise InputError(f"{where}: class index {index!r}; expected a whole number from 0")
        if name in names:
            raise InputError(f"{where}: {file} is listed twice")
        names[name] = int(index)
    return picture_source(root, list(names), list(names.values()))


def picture_source(
    root: Path,
    names: Sequence[str],
    labels: Sequence[int],
    *,
    classes: tuple[str, ...] | None = None,
    groups: tuple[tuple[int, ...], ...] | None = None,
    border: int = 0,
    note: str | None = None,
) -> Source:
    """Picture files below a folder as a source; ``border`` pixels are cut off on all sides."""
    return Source(
        name=root.resolve().name or str(root),
        names=tuple(names),
        ids=np.array([picture_id(name) for name in names], dtype=np.int64),
        labels=np.array(labels, dtype=np.int64),
        read=lambda i: _without_border(root / names[i], border),
        classes=classes,
        groups=groups,
        stamp=lambda i: file_stamp(root / names[i], f"border {border}"),
        note=note,
    )


def _without_border(path: Path, border: int) -> Image.Image:
    picture = read_picture(path)
    picture = picture if picture.mode == "RGB" else picture.convert("RGB")  # which would copy it once more
    width, height = picture.size
    if min(width, height) <= 2 * border:
        raise InputError(f"{path}: {width}×{height} pixels are too few for a border of {border}")
    return picture.crop((border, border, width - border, height - border)) if border else picture


def folder_entries(folder: Path) -> list[os.DirEntry[str]]:
    """What lies in a folder, by name; hidden files and folders are left out."""
    with refused(f"{folder}: cannot be listed", OSError), os.scandir(folder) as entries:
        return sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)


def subfolders(folder: Path) -> list[Path]:
    """The folders in a folder, by name; a link that leads to itself is none."""

    def is_dir(entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError:
            return False

    return [folder / entry.name for entry in folder_entries(folder) if is_dir(entry)]


def class_folders(root: Path) -> list[str]:
    """The class folders in class order; empty ones count, too."""
    if not is_folder(root):
        raise InputError(f"{root}: no such folder")
    names = [path.name for path in subfolders(root)]
    if not names:
        raise InputError(f"{root}: no folders in it; expected one per class, or pictures with a {LABELS_FILE}")
    return in_class_order(names)


def in_class_order(names: Iterable[str]) -> list[str]:
    """Class folders by name, or by number where all are numbers.

    >>> in_class_order(["10", "9"]), in_class_order(["10", "9", "a"])
    (['9', '10'], ['10', '9', 'a'])
    """
    by_name = sorted(names)
    numbers = all(name.isascii() and name.isdecimal() for name in by_name)
    return sorted(by_name, key=int) if numbers else by_name


def folder_indices(root: str, folders: Sequence[str], mapping: ClassMapping | None) -> dict[str, int]:
    """The index of each folder that may occur, as the mapping says or in order; one that it leaves out is refused."""
    if mapping is None:
        return _numbered("the class folders", folders)
    if isinstance(mapping, Mapping):
        indices = _checked("the mapping", mapping)
    elif not isinstance(mapping, (str, os.PathLike)):
        indices = _numbered("the class order", mapping)
    elif _is_imagenet(mapping):
        indices = _numbered("ImageNet", imagenet_wnids()) | imagenet_indices(folders)
    else:
        indices = _read_mapping(Path(mapping))
    unknown = sorted(set(folders) - indices.keys())
    if unknown and _is_imagenet(mapping):
        raise InputError(
            f"{root}: class folder {unknown[0]!r} is not in the mapping imagenet, of WordNet ids, numbers and English "
            f"names; {hint(unknown[0], [*imagenet_names()], see='blemish.core.class_names')}"
        )
    if unknown:
        raise InputError(f"{root}: class folder {unknown[0]!r} is not in the mapping ({first_few(list(indices), 5)})")
    return indices


def _is_imagenet(mapping: ClassMapping | None) -> bool:
    return isinstance(mapping, str) and mapping == IMAGENET and not is_there(mapping)


def _read_mapping(path: Path) -> dict[str, int]:
    if not is_there(path):
        raise InputError(f"{path}: no such file; expected a mapping in JSON, a folder per line, or imagenet")
    text = read_text(path)
    if text.lstrip()[:1] in ("{", "["):
        with refused(f"{path}: not readable", ValueError):
            mapping = parse_json(text)
        return _checked(str(path), mapping) if isinstance(mapping, dict) else _numbered(str(path), mapping)
    return _numbered(str(path), [line.strip() for line in text.splitlines() if line.strip()])


def _numbered(origin: str, names: Sequence[object]) -> dict[str, int]:
    indices: dict[str, int] = {}
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{origin}: {name!r}; expected names of class folders")
        if name in indices:
            raise InputError(f"{origin}: {name!r} occurs twice")
        indices[name] = len(indices)
    if not indices:
        raise InputError(f"{origin}: no names in it; expected one class folder per line")
    return indices


def _checked(origin: str, mapping: Mapping[str, object]) -> dict[str, int]:
    indices: dict[str, int] = {}
    for name, index in mapping.items():
        if isinstance(index, bool) or not isinstance(index, (int, np.integer)) or not 0 <= index < 10**6:
            raise InputError(f"{origin}: {name!r} has index {index!r}; expected a whole number from 0")
        indices[str(name)] = int(index)
    if not indices:
        raise InputError(f'{origin}: empty; expected {{"folder": index, …}}')
    return indices


def mapped_classes(indices: dict[str, int], mapping: ClassMapping | None) -> tuple[str, ...]:
    """A name for every index; folders that share one are named together, an index without a folder by its number."""
    if _is_imagenet(mapping):
        return imagenet_wnids()
    members: dict[int, list[str]] = {}
    for name, index in indices.items():
        members.setdefault(index, []).append(name)
    return tuple(" / ".join(members.get(index, [str(index)])) for index in range(max(members) + 1))


def _rows(table: Path) -> list[tuple[str, str]]:
    if not is_there(table):
        raise InputError(f"{table}: no such file; expected a table with the columns {', '.join(_COLUMNS)}")
    header, *rows = read_csv(table) or [[]]
    for column in _COLUMNS:
        if column not in header:
            raise InputError(f"{table}: no column {column!r} among {first_few(header, 5) or 'nothing'}")
    file, index = map(header.index, _COLUMNS)
    # Cells at the end of a row may be missing.
    return [(row[file], row[index]) for row in (row + [""] * len(header) for row in rows)]
