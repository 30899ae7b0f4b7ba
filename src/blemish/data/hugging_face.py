"""Datasets of Hugging Face's library: an object, one that was saved to a folder, or one on the hub or in its cache."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from blemish.core.errors import InputError, brief, refused
from blemish.core.optional import optional_import
from blemish.core.reading import is_file
from blemish.data.dataset_source import as_picture, check_constant
from blemish.data.folders import ClassMapping
from blemish.data.pictures import decode_picture, read_picture
from blemish.data.source import Source, file_stamp

PREFIX = "hf:"

_SAVED, _SAVED_SPLITS = "state.json", "dataset_dict.json"
_ADDRESS = re.compile(r"hf:(?P<name>[^:]+)(?::(?P<config>[^:]+))??(?::(?P<split>[^:\[]+(?:\[[^\]]*\])?))?")


def is_of_hugging_face(data: object) -> bool:
    """Whether an object is a dataset, or several splits, of Hugging Face's library."""
    return any(kind.__module__.partition(".")[0] == "datasets" for kind in type(data).__mro__)


def is_saved(folder: Path) -> bool:
    """Whether a folder was written by ``save_to_disk``."""
    return is_file(folder / _SAVED) or is_file(folder / _SAVED_SPLITS)


def hub_source(address: str, *, columns: Sequence[str] | None = None, mapping: ClassMapping | None = None) -> Source:
    """The images of ``hf:NAME``, ``hf:NAME:SPLIT`` or ``hf:NAME:CONFIGURATION:SPLIT``.

    The name is that of a dataset on the hub, or of a folder that the library understands. Code of datasets is never
    run.
    """
    return rows_source(_of_hub(address), name=address, columns=columns, mapping=mapping)


def _of_hub(address: str) -> Any:
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        raise InputError(f"{address}: expected hf:NAME, hf:NAME:SPLIT or hf:NAME:CONFIGURATION:SPLIT")
    if parts["split"] is None and is_saved(Path(parts["name"])):
        return _of_folder(parts["name"])
    library = optional_import("datasets")
    with refused(f"{address}: cannot be opened"):
        return library.load_dataset(parts["name"], name=parts["config"], split=parts["split"])


def saved_source(
    folder: str | os.PathLike[str], *, columns: Sequence[str] | None = None, mapping: ClassMapping | None = None
) -> Source:
    """The images of a dataset that ``save_to_disk`` wrote to a folder; of several splits, name the folder of one."""
    return rows_source(_of_folder(folder), name=Path(folder).resolve().name, columns=columns, mapping=mapping)


def _of_folder(folder: str | os.PathLike[str]) -> Any:
    library = optional_import("datasets")
    with refused(f"{os.fspath(folder)}: cannot be opened"):
        return library.load_from_disk(os.fspath(folder))


def plain_rows(source: str) -> Any:
    """The dataset at ``hf:NAME:SPLIT``, or in a saved folder, as it lies there: one split, and nothing decoded."""
    data = _one_split(_of_hub(source) if source.startswith(PREFIX) else _of_folder(source), source)
    return data.with_format(None)


def rows_source(
    data: Any, *, name: str | None = None, columns: Sequence[str] | None = None, mapping: ClassMapping | None = None
) -> Source:
    """The images of a dataset; an image's name and id are its position.

    Pictures are decoded here from the bytes that the dataset holds, so that they are the same as those of its files.
    What a transform makes of pictures (``set_transform``) is taken as it comes; one that changes labels, which are read
    from their column, is refused.
    """
    from blemish.data.tables import check_labels, choose_columns, table_labels

    data = _one_split(data, name)
    called = name or data.info.dataset_name or type(data).__name__
    if len(data) == 0:
        raise InputError(f"{called}: no images in it")
    chosen = choose_columns(called, data.features.arrow_schema, columns)
    column = data.with_format("arrow").select_columns([chosen.label])[:].column(0)
    check_labels(called, column, chosen.classes)
    numbered = table_labels(called, column, chosen.classes, mapping)
    transformed = data.format["type"] == "custom"
    rows = data if transformed else _undecoded(data, chosen.image)
    one_at_a_time = threading.Lock()

    def read(i: int) -> Image.Image:
        where = f"row {i} of {called}"
        with one_at_a_time, refused(where):
            item = rows[i]
        if chosen.image not in item:
            raise InputError(f"{where}: no {chosen.image!r} in it; expected the transform to keep the column")
        if transformed and chosen.label in item and not _same(item[chosen.label], column[i].as_py()):
            raise InputError(
                f"{where}: its transform makes the label {brief(item[chosen.label])} of {brief(column[i].as_py())}; "
                "expected the labels of the column: change them with map, or give a mapping"
            )
        value = item[chosen.image]
        return (as_picture(where, value) if transformed else _decoded(value, where)).convert("RGB")

    if transformed:
        check_constant(called, read)
    stamp = None if transformed else _stamp(data)
    return Source(
        name=called,
        names=tuple(map(str, range(len(data)))),
        ids=np.arange(len(data), dtype=np.int64),
        labels=numbered.numbers,
        read=read,
        classes=numbered.classes,
        labelling=numbered.labelling,
        stamp=None if stamp is None else lambda i: f"{stamp}{i}|{chosen.image}",
    )


def _same(label: Any, stated: Any) -> bool:
    """Whether a transform has left a label as it is, but for its type."""
    plain = np.asarray(label)
    return plain.ndim == 0 and plain.item() == stated


def _one_split(data: Any, name: str | None) -> Any:
    called = name or "the dataset"
    if isinstance(data, dict):
        if len(data) != 1:
            split = next(iter(data), "test")
            between = ":" if (name or "").startswith(PREFIX) else "/"  # of the hub, or a folder
            example = f"data[{split!r}]" if name is None else f"{name}{between}{split}"
            raise InputError(f"{called}: has the splits {', '.join(map(str, data))}; expected one, such as {example}")
        data = next(iter(data.values()))
    if not hasattr(data, "__getitem__") or not hasattr(data, "__len__"):
        raise InputError(
            f"{called}: a stream, of type {type(data).__name__}; expected a dataset with len() and data[i]"
        )
    return data


def _undecoded(data: Any, image: str) -> Any:
    """The rows with pictures as bytes."""
    library = optional_import("datasets")
    plain = data.with_format(None).select_columns([image])
    feature = plain.features[image]
    return plain.cast_column(image, library.Image(decode=False)) if isinstance(feature, library.Image) else plain


def _decoded(value: Any, where: str) -> Image.Image:
    from blemish.data.tables import encoded_picture

    content, path = encoded_picture(value, where)
    if content is not None:
        return decode_picture(content, where)
    if path is None:
        raise InputError(f"{where}: no picture in it; expected one in each row")
    if not is_file(path):
        raise InputError(f"{where}: {path}: no such file; expected the picture itself, or its file")
    return read_picture(path)


def _stamp(data: Any) -> str | None:
    """The files that a dataset reads, and which of their rows; None for one in memory."""
    files = [entry["filename"] for entry in data.cache_files]
    mark = getattr(data, "_fingerprint", None)
    if not files or mark is None:
        return None
    return "".join(file_stamp(file) for file in files) + f"{mark}|"
