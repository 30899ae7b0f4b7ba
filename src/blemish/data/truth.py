"""What is in images, where that is more than a class: boxes, from COCO's annotations or drawn."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError, about
from blemish.core.printable import first_few
from blemish.core.reading import is_file, read_json
from blemish.data.folders import picture_source
from blemish.data.source import Source

_SHOWN = 3


@dataclass(frozen=True)
class Boxes:
    """The objects of one image: (left, top, width, height), category, area, and whether it is a crowd."""

    boxes: NDArray[np.float64]
    labels: NDArray[np.int64]
    areas: NDArray[np.float64]
    crowd: NDArray[np.bool_]


@dataclass(frozen=True)
class BoxTruth:
    """The objects of all images, by name, and the names of the categories by number.

    ``sizes`` are the heights and widths of the images for which the boxes hold, as far as they are stated.
    """

    categories: Mapping[int, str]
    images: Mapping[str, Boxes]
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """What tells this truth from another one."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr(sorted(self.categories.items())).encode())
        for name in sorted(self.images):
            own = self.images[name]
            digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
            for values in (own.boxes, own.labels, own.areas, own.crowd):
                digest.update(np.ascontiguousarray(values).tobytes() + b"\0")
        return digest.hexdigest()


def coco_truth(annotations: str | os.PathLike[str]) -> BoxTruth:
    """The objects in a file of COCO's annotations (instances_val2017.json); images in the order of their numbers."""
    path = Path(annotations)
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path}: a {type(content).__name__}; expected COCO's annotations, an object")
    entries = {key: _objects(path, content, key) for key in ("images", "annotations", "categories")}
    with about(str(path)):
        names = {_whole(entry, "id"): _file_name(entry) for entry in entries["images"]}
        categories = {_whole(entry, "id"): _text(entry, "name") for entry in entries["categories"]}
        lists: dict[int, list[dict[str, Any]]] = {number: [] for number in names}
        for entry in entries["annotations"]:
            if (owner := _whole(entry, "image_id")) not in lists:
                raise InputError(f"annotation {entry.get('id')} is of image {owner}, which is not among the images")
            if _whole(entry, "category_id") not in categories:
                raise InputError(
                    f"annotation {entry.get('id')} is of category {entry['category_id']}; expected a known one"
                )
            lists[owner].append(entry)
        if len(names) < len(entries["images"]):
            raise InputError("several images with the same id; expected ids that differ")
        if len(set(names.values())) < len(names):
            raise InputError("several images with the same file_name; expected names that differ")
        truth = {names[number]: _boxes(lists[number]) for number in sorted(names)}
        sizes = {
            _file_name(entry): (_whole(entry, "height"), _whole(entry, "width"))
            for entry in entries["images"]
            if entry.get("height") is not None and entry.get("width") is not None
        }
    return BoxTruth(categories, truth, sizes)


def coco_images(folder: str | os.PathLike[str], annotations: str | os.PathLike[str]) -> tuple[Source, BoxTruth]:
    """The pictures of a folder that a file of COCO's annotations lists, and their objects."""
    root, truth = Path(folder), coco_truth(annotations)
    names = list(truth.images)  # in the order in which pycocotools takes them too
    if missing := [name for name in names if not is_file(root / name)]:
        raise InputError(
            f"{root}: {len(missing)} of {len(names)} images of {Path(annotations).name} are not there: "
            f"{first_few(missing, _SHOWN)}"
        )
    return picture_source(root, names, [0] * len(names)), truth


def _objects(path: Path, content: dict[str, Any], key: str) -> list[dict[str, Any]]:
    entries = content.get(key)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{path}: no list of {key}; expected COCO's annotations, such as instances_val2017.json")
    return entries


def _whole(entry: dict[str, Any], key: str) -> int:
    value = entry.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"{key} {value!r}; expected a whole number")
    return value


def _text(entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise InputError(f"{key} {value!r}; expected a text")
    return value


def _file_name(entry: dict[str, Any]) -> str:
    name = PurePosixPath(_text(entry, "file_name"))
    if name.is_absolute() or ".." in name.parts:
        raise InputError(f"file_name {str(name)!r}; expected a picture in the folder")
    return str(name)


def _boxes(entries: Sequence[dict[str, Any]]) -> Boxes:
    rows = []
    for entry in entries:
        box = entry.get("bbox")
        if not isinstance(box, list) or len(box) != 4 or not all(isinstance(v, int | float) for v in box):
            raise InputError(f"annotation {entry.get('id')}: bbox {box!r}; expected four numbers")
        area = entry.get("area", box[2] * box[3])
        rows.append((*map(float, box), float(area), bool(entry.get("iscrowd", 0))))
    table = np.array(rows, dtype=np.float64).reshape(-1, 6)
    if not np.isfinite(table).all():
        raise InputError("boxes that are not finite; expected numbers")
    labels = np.array([entry["category_id"] for entry in entries], dtype=np.int64)
    return Boxes(table[:, :4], labels, table[:, 4], table[:, 5].astype(np.bool_))
