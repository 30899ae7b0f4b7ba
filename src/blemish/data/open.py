"""From a path to labelled images: what lies there decides how it is read."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from torch.utils.data import DataLoader, Dataset

from blemish.core.class_names import read_class_names
from blemish.core.errors import InputError
from blemish.core.reading import is_folder, is_there
from blemish.data.array_source import array_source
from blemish.data.arrays import ARRAY_SUFFIXES
from blemish.data.dataset_source import dataset_source
from blemish.data.digits import digits_source
from blemish.data.fetching import is_address
from blemish.data.folders import LABELS_FILE, ClassMapping, folder_entries, folder_source, table_source
from blemish.data.hugging_face import PREFIX, hub_source, is_of_hugging_face, is_saved, rows_source, saved_source
from blemish.data.image_files import PARQUET_SUFFIX, refuse_given
from blemish.data.in_memory import is_pair, loader_source, pair_source
from blemish.data.pictures import PICTURE_SUFFIXES
from blemish.data.shapes import SHAPES
from blemish.data.source import Source
from blemish.data.stored import StoredSet, is_stored, open_stored
from blemish.data.webdataset import shard_source

__all__ = ["StoredSet", "open_source", "open_stored"]

DEMO = "demo:digits"

_log = logging.getLogger(__name__)

_EXPECTED = (
    f"expected a folder with a folder per class, a folder with {LABELS_FILE}, an .npy or .npz file, WebDataset shards "
    f"(.tar), Parquet files, a saved dataset, hf:NAME:SPLIT, an address such as s3://bucket/val.tar, or {DEMO}"
)


class Rows(Protocol):
    """What has a length and items, such as a torch dataset or one of Hugging Face's."""

    def __len__(self) -> int:
        """The number of items."""
        ...

    def __getitem__(self, row: Any, /) -> Any:
        """An item."""
        ...


Data = str | os.PathLike[str] | Source | Dataset[Any] | DataLoader[Any] | tuple[Any, Any] | Rows
"""What `open_source` opens."""


class _How(NamedTuple):
    """What was said of how the data is to be read."""

    labels: str | os.PathLike[str] | None
    mapping: ClassMapping | None
    columns: tuple[str, ...] | None


def open_source(
    data: Data,
    *,
    labels: str | os.PathLike[str] | None = None,
    mapping: ClassMapping | None = None,
    columns: Sequence[str] | None = None,
    class_names: str | os.PathLike[str] | Sequence[str] | None = None,
) -> Source:
    """The labelled images at a path: class folders, a folder with a table of labels, array files, shards, or Parquet.

    ``labels`` names the file of labels of an ``.npy`` file, or the table of a folder; ``mapping`` gives class folders
    their indices, as for `folder_source`, and the classes that a table names. ``columns`` are those of the images and
    of the labels of Parquet files and Hugging Face datasets. A torch dataset, one of Hugging Face's, a DataLoader and a
    pair ``(images, labels)`` are wrapped; a source is given back. ``hf:NAME:SPLIT`` is a dataset on Hugging Face's hub,
    ``demo:digits`` the embedded set. ``class_names`` says what people call the classes, as `read_class_names` takes
    them.
    """
    how = _How(labels, mapping, None if columns is None else tuple(columns))
    if isinstance(data, Source):
        refuse_given("a source", **how._asdict())
        source = data
    elif isinstance(data, (str, os.PathLike)):
        source = replace(_open_path(data, how), reopen=partial(_open_path, data, how))
        _log.info("opened %s: %d images", data, len(source))
    else:
        source = replace(_open_object(data, how), reopen=partial(_open_object, data, how))
    return source if class_names is None else replace(source, class_names=read_class_names(class_names))


def _open_object(data: Any, how: _How) -> Source:
    if is_of_hugging_face(data):
        refuse_given("a dataset, which has labels of its own", labels=how.labels)
        return rows_source(data, columns=how.columns, mapping=how.mapping)
    refuse_given("a dataset", **how._asdict())
    if isinstance(data, DataLoader):
        return loader_source(data)
    if isinstance(data, dict):
        raise InputError(f"a dictionary of {', '.join(map(str, data)) or 'nothing'}; expected one set of images")
    if is_pair(data):
        return pair_source(data)
    return dataset_source(data)


def _open_path(data: str | os.PathLike[str], how: _How) -> Source:
    if data == SHAPES:
        raise InputError(
            f"{SHAPES}: objects and maps, without a class for each image; expected a task (--task detection)"
        )
    if data == DEMO:
        refuse_given(DEMO, **how._asdict())
        return digits_source()
    if is_address(data):
        return _open_address(str(data), how)
    if isinstance(data, str) and data.startswith(PREFIX):
        refuse_given(f"{data}, which has labels of its own", labels=how.labels)
        return hub_source(data, columns=how.columns, mapping=how.mapping)
    path = Path(data)
    if is_folder(path):
        return _open_folder(path, how)
    suffix = path.suffix.lower()
    if suffix == ".tar":  # a pattern of several is no file itself
        refuse_given(f"{path}, which has labels of its own", **how._asdict())
        return shard_source(data)
    if suffix == PARQUET_SUFFIX:
        return _open_parquet(path, how)
    if not is_there(path):
        raise InputError(f"{path}: no such file or folder; {_EXPECTED}")
    refuse_given(f"{path}, which is no table", columns=how.columns)
    if suffix in ARRAY_SUFFIXES:
        refuse_given(f"{path}, an array file", mapping=how.mapping)
        return array_source(path, how.labels)
    if suffix == ".csv":
        refuse_given(f"{path}, a table of labels", labels=how.labels, mapping=how.mapping)
        return table_source(path.parent, path)
    if suffix in PICTURE_SUFFIXES:
        raise InputError(f"{path}: a single picture, without a label; {_EXPECTED}")
    raise InputError(f"{path}: a file of an unknown kind; {_EXPECTED}")


def _open_address(address: str, how: _How) -> Source:
    from blemish.data.remote import remote_source

    return remote_source(address, labels=how.labels, columns=how.columns, mapping=how.mapping)


def _open_parquet(path: Path, how: _How) -> Source:
    from blemish.data.parquet import parquet_source  # pyarrow takes its time

    refuse_given(f"{path}, which has labels of its own", labels=how.labels)
    return parquet_source(path, columns=how.columns, mapping=how.mapping)


def _open_folder(path: Path, how: _How) -> Source:
    if is_saved(path):
        refuse_given(f"{path}, which has labels of its own", labels=how.labels)
        return saved_source(path, columns=how.columns, mapping=how.mapping)
    if how.labels is not None or is_there(path / LABELS_FILE):
        refuse_given(f"{path}, whose table gives the class indices", mapping=how.mapping, columns=how.columns)
        return table_source(path, how.labels)
    entries = folder_entries(path)
    folders = [entry.name for entry in entries if entry.is_dir()]
    files = [entry.name for entry in entries if not entry.is_dir()]
    shards, tables, arrays, pictures = (
        [name for name in files if Path(name).suffix.lower() in suffixes]
        for suffixes in ((".tar",), (PARQUET_SUFFIX,), ARRAY_SUFFIXES, PICTURE_SUFFIXES)
    )
    if shards and tables:
        raise InputError(f"{path}: holds both .tar and .parquet files; expected one of the two kinds")
    if tables:
        return _open_parquet(path, how)
    refuse_given(f"{path}, which is no table", columns=how.columns)
    if shards:
        refuse_given(f"{path}, a folder of shards", mapping=how.mapping)
        return shard_source(path)
    if (arrays or folders) and is_stored(path):
        raise InputError(f"{path}: looks like a corrupted set; expected clean images here, and it as a stored set")
    if arrays:
        raise InputError(f"{path}: a folder of array files; expected one of them, such as {arrays[0]}")
    if not folders:
        held = f"{len(pictures)} pictures without labels" if pictures else "nothing that can be used"
        raise InputError(f"{path}: holds {held}; {_EXPECTED}")
    return folder_source(path, mapping=how.mapping)
