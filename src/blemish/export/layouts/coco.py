"""COCO: pictures in folders beside ``annotations``, whose files name them; maps of labels in PNG are no pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from blemish.data.pictures import PICTURE_SUFFIXES
from blemish.export.layouts.base import Layout

_LABELS = ("annotations", "stuff", "panoptic", "semantic", "masks", "labels")


def _fits(root: Path) -> bool:
    return any((root / "annotations").glob("*.json"))


def _is_picture(parts: tuple[str, ...]) -> bool:
    return not parts[0].lower().startswith(_LABELS)


def _renamed(name: str, content: bytes, stored: Callable[[str], str]) -> bytes | None:
    """The same with other file names, where pictures have another suffix than before."""
    if not name.startswith("annotations/") or not name.endswith(".json"):
        return None
    try:
        labels = json.loads(content)
        images = labels["images"]
        known = [image["file_name"] for image in images]
    except (ValueError, KeyError, TypeError):
        return None  # of another kind: captions and panoptic files have images too
    changed = False
    for image, file in zip(images, known, strict=True):
        if isinstance(file, str) and file.lower().endswith(PICTURE_SUFFIXES) and stored(file) != file:
            image["file_name"], changed = stored(file), True
    return json.dumps(labels).encode() if changed else None


COCO = Layout(
    name="coco",
    title="COCO folder",
    looks_like="a folder annotations with .json files, and folders of pictures beside it",
    fits=_fits,
    is_picture=_is_picture,
    renamed=_renamed,
)
