"""Tables of images, as Parquet files and Hugging Face datasets hold them: which columns are the images and labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from blemish.core.errors import InputError, brief
from blemish.core.printable import first_few
from blemish.data.dataset_source import IMAGE_COLUMNS, LABEL_COLUMNS
from blemish.data.folders import ClassMapping, folder_indices, in_class_order, mapped_classes
from blemish.data.source import Labelling

_MOST_CLASSES = 10**6


@dataclass(frozen=True)
class Columns:
    """The columns of images and labels; ``classes`` are the names that the table itself gives to the labels."""

    image: str
    label: str
    classes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Labels:
    """Labels as a `Source` takes them."""

    numbers: NDArray[np.int64]
    classes: tuple[str, ...] | None
    labelling: Labelling


def choose_columns(name: str, schema: pa.Schema, chosen: Sequence[str] | None = None) -> Columns:
    """The columns of a table, as ``chosen`` names them (image, label), or those that can be meant.

    Images are encoded: bytes, or ``{bytes, path}`` as Hugging Face writes them. Labels are whole numbers, or names. Of
    several columns that fit the usual names are taken; where that leaves a choice, it is refused.
    """
    images = [field.name for field in schema if is_encoded(field.type)]
    held = ", ".join(f"{field.name} ({field.type})" for field in schema) or "no columns"
    if chosen is not None:
        if len(chosen) != 2:
            raise InputError(f"{name}: columns {', '.join(chosen)}; expected two, of the images and of the labels")
        if missing := [column for column in chosen if column not in schema.names]:
            raise InputError(f"{name}: no column {missing[0]!r} among {held}")
        image, label = chosen
        if image not in images:
            raise InputError(f"{name}: column {image!r} holds {schema.field(image).type}; expected encoded pictures")
    else:
        image = _the_one(name, "images", images, IMAGE_COLUMNS, held)
        stated = [column for column in _stated_names(schema) if column in schema.names]
        fitting = stated or [field.name for field in schema if field.name in LABEL_COLUMNS and _is_label(field.type)]
        label = _the_one(name, "labels", fitting, LABEL_COLUMNS, held)
    return Columns(image, label, _stated_names(schema).get(label))


def image_columns(name: str, schema: pa.Schema, chosen: Sequence[str] | None = None) -> list[str]:
    """The columns of pictures that are named, or the one that can be meant: encoded, or lists of encoded ones."""
    fitting = picture_columns(schema)
    held = ", ".join(f"{field.name} ({field.type})" for field in schema) or "no columns"
    if chosen is None:
        return [_the_one(name, "images", fitting, IMAGE_COLUMNS, held, naming="--columns IMAGE, or IMAGE,IMAGE")]
    for column in chosen:
        if column not in fitting:
            known = f"{schema.field(column).type}" if column in schema.names else "nothing"
            raise InputError(f"{name}: column {column!r} holds {known}; expected encoded pictures, among {held}")
    return list(dict.fromkeys(chosen))


def picture_columns(schema: pa.Schema) -> list[str]:
    """All columns of encoded pictures, or of lists of them."""
    return [field.name for field in schema if is_encoded(_member(field.type))]


def other_columns(name: str, schema: pa.Schema, chosen: Sequence[str] | None = None) -> list[str]:
    """The columns of pictures that are not those of `image_columns`."""
    own = image_columns(name, schema, chosen)
    return [column for column in picture_columns(schema) if column not in own]


def _member(kind: pa.DataType) -> pa.DataType:
    """What a column holds, or lists in it."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return kind.value_type if is_list else kind


def is_encoded(kind: pa.DataType) -> bool:
    """Whether a column holds encoded pictures: bytes, or ``{bytes, path}``."""
    if pa.types.is_struct(kind):
        return kind.get_field_index("bytes") >= 0 and is_encoded(kind.field(kind.get_field_index("bytes")).type)
    return str(kind) in ("binary", "large_binary", "binary_view")


def _is_label(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or _is_name(kind))


def _is_name(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_name(kind.value_type)
    return str(kind) in ("string", "large_string", "string_view")


def _the_one(
    name: str,
    what: str,
    fitting: Sequence[str],
    usual: Sequence[str],
    held: str,
    *,
    naming: str = "--columns IMAGE,LABEL",
) -> str:
    """The only column that fits, or the only one that is called as such columns are."""
    if len(fitting) > 1:
        fitting = [column for column in fitting if column in usual] or fitting
    if len(fitting) != 1:
        given = f"{len(fitting)} columns that may be the {what} ({first_few(fitting, 5)})" if fitting else f"no {what}"
        raise InputError(f"{name}: {given} among {held}; name the columns: {naming}")
    return fitting[0]


def _stated_names(schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    """The class names of the columns that Hugging Face's features call labels of classes."""
    try:
        features = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"]
        entries = {column: entry["names"] for column, entry in features.items() if entry.get("_type") == "ClassLabel"}
        # Names in other shapes are nothing that we know; the labels are numbers all the same.
        return {column: tuple(map(str, names)) for column, names in entries.items() if isinstance(names, list)}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return {}


def table_labels(
    name: str, values: pa.ChunkedArray, classes: tuple[str, ...] | None, mapping: ClassMapping | None
) -> Labels:
    """Labels out of a column; each row has one.

    Numbers are the model's own, unless the table names its classes: these are numbered as class folders are, once the
    model is known, and ``mapping`` gives them other indices. So are names, in their order as folders. The column has
    been checked.
    """
    if _is_name(values.type):
        texts = [str(text) for text in values.to_pylist()]
        classes = tuple(in_class_order(set(texts)))
        number_of = {text: number for number, text in enumerate(classes)}
        numbers = np.array([number_of[text] for text in texts], dtype=np.int64)
    else:
        numbers = values.to_numpy().astype(np.int64)
    if classes is None:
        if mapping is not None:
            raise InputError(f"mapping given for {name}, whose labels are numbers; expected none")
        return Labels(numbers, None, "given")
    if mapping is None:
        return Labels(numbers, classes, "names")
    indices = folder_indices(name, classes, mapping)
    mapped = np.array([indices[text] for text in classes], dtype=np.int64)
    return Labels(mapped[numbers], mapped_classes(indices, mapping), "mapping")


def check_labels(name: str, values: pa.ChunkedArray, classes: tuple[str, ...] | None) -> None:
    """Refuse a column with something else than a label in each row; the message names the row."""
    if not _is_label(values.type):
        raise InputError(f"{name}: labels of type {values.type}; expected whole numbers or names")
    if values.null_count:
        row = values.is_null().index(True).as_py()
        raise InputError(f"row {row} of {name}: no label; expected one in each row")
    if _is_name(values.type):
        return
    most = _MOST_CLASSES if classes is None else len(classes)
    numbers = values.to_numpy()
    strange = np.flatnonzero((numbers < 0) | (numbers >= most))
    if len(strange):
        row = int(strange[0])
        hint = "; -1 stands for no label: is it a test set?" if numbers[row] == -1 else ""
        raise InputError(f"row {row} of {name}: label {numbers[row]}; expected 0 … {most - 1}{hint}")


def encoded_picture(value: Any, where: str) -> tuple[bytes | None, str | None]:
    """The bytes and the path of a value of a column of images."""
    content, path = (value.get("bytes"), value.get("path")) if isinstance(value, dict) else (value, None)
    if not (content is None or isinstance(content, bytes)) or not (path is None or isinstance(path, str)):
        raise InputError(f"{where}: {brief(value)}; expected the bytes of a picture")
    return content, path
