"""From a path to labelled images: what lies there decides how it is read."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch.utils.data import Dataset

from blemish.core.class_names import read_class_names
from blemish.core.errors import InputError
from blemish.core.reading import is_folder, is_there
from blemish.data.array_source import array_source
from blemish.data.arrays import ARRAY_SUFFIXES
from blemish.data.dataset_source import dataset_source
from blemish.data.digits import digits_source
from blemish.data.folders import LABELS_FILE, ClassMapping, folder_entries, folder_source, table_source
from blemish.data.pictures import PICTURE_SUFFIXES
from blemish.data.source import Source
from blemish.data.stored import StoredSet, is_stored, open_stored
from blemish.data.webdataset import shard_source

__all__ = ["StoredSet", "open_source", "open_stored"]

DEMO = "demo:digits"

_log = logging.getLogger(__name__)

_EXPECTED = (
    f"expected a folder with a folder per class, a folder with {LABELS_FILE}, "
    f"an .npy or .npz file, WebDataset shards (.tar), or {DEMO}"
)


def open_source(
    data: str | os.PathLike[str] | Source | Dataset[Any],
    *,
    labels: str | os.PathLike[str] | None = None,
    mapping: ClassMapping | None = None,
    class_names: str | os.PathLike[str] | Sequence[str] | None = None,
) -> Source:
    """The labelled images at a path: class folders, a folder with a table of labels, an array file, or shards.

    ``labels`` names the file of labels of an ``.npy`` file, or the table of a folder; ``mapping`` gives class folders
    their indices, as for `folder_source`. A torch dataset is wrapped; a source is given back. ``demo:digits`` is the
    embedded set. ``class_names`` says what people call the classes, as `read_class_names` takes them.
    """
    source = _opened(data, labels, mapping)
    return source if class_names is None else replace(source, class_names=read_class_names(class_names))


def _opened(
    data: str | os.PathLike[str] | Source | Dataset[Any],
    labels: str | os.PathLike[str] | None,
    mapping: ClassMapping | None,
) -> Source:
    if not isinstance(data, (str, os.PathLike)):
        _unused("a dataset", labels=labels, mapping=mapping)
        return data if isinstance(data, Source) else replace(dataset_source(data), reopen=partial(dataset_source, data))
    source = _open_path(data, labels, mapping)
    _log.info("opened %s: %d images", data, len(source))
    return replace(source, reopen=partial(_open_path, data, labels, mapping))


def _open_path(
    data: str | os.PathLike[str], labels: str | os.PathLike[str] | None, mapping: ClassMapping | None
) -> Source:
    if data == DEMO:
        _unused(DEMO, labels=labels, mapping=mapping)
        return digits_source()
    path = Path(data)
    if is_folder(path):
        return _open_folder(path, labels, mapping)
    suffix = path.suffix.lower()
    if suffix == ".tar":  # a pattern of several is no file itself
        _unused(f"{path}, which has labels of its own", labels=labels, mapping=mapping)
        return shard_source(data)
    if not is_there(path):
        raise InputError(f"{path}: no such file or folder; {_EXPECTED}")
    if suffix in ARRAY_SUFFIXES:
        _unused(f"{path}, an array file", mapping=mapping)
        return array_source(path, labels)
    if suffix == ".csv":
        _unused(f"{path}, a table of labels", labels=labels, mapping=mapping)
        return table_source(path.parent, path)
    if suffix in PICTURE_SUFFIXES:
        raise InputError(f"{path}: a single picture, without a label; {_EXPECTED}")
    raise InputError(f"{path}: a file of an unknown kind; {_EXPECTED}")


def _open_folder(path: Path, labels: str | os.PathLike[str] | None, mapping: ClassMapping | None) -> Source:
    if labels is not None or is_there(path / LABELS_FILE):
        _unused(f"{path}, whose table gives the class indices", mapping=mapping)
        return table_source(path, labels)
    entries = folder_entries(path)
    folders = [entry.name for entry in entries if entry.is_dir()]
    files = [entry.name for entry in entries if not entry.is_dir()]
    shards, arrays, pictures = (
        [name for name in files if Path(name).suffix.lower() in suffixes]
        for suffixes in ((".tar",), ARRAY_SUFFIXES, PICTURE_SUFFIXES)
    )
    if shards:
        _unused(f"{path}, a folder of shards", mapping=mapping)
        return shard_source(path)
    if (arrays or folders) and is_stored(path):
        raise InputError(f"{path}: looks like a corrupted set; expected clean images here, and it as a stored set")
    if arrays:
        raise InputError(f"{path}: a folder of array files; expected one of them, such as {arrays[0]}")
    if not folders:
        held = f"{len(pictures)} pictures without labels" if pictures else "nothing that can be used"
        raise InputError(f"{path}: holds {held}; {_EXPECTED}")
    return folder_source(path, mapping=mapping)


def _unused(data: str, **settings: object) -> None:
    for name, value in settings.items():
        if value is not None:
            raise InputError(f"{name} given for {data}; expected none")
