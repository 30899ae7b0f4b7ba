"""Folders with pictures in ``images`` beside ``annotations``, ``labels`` or ``masks``: ADE20K, YOLO and others."""

from __future__ import annotations

from pathlib import Path

from blemish.export.layouts.base import Layout

_BESIDE = ("annotations", "labels", "masks")


def _fits(root: Path) -> bool:
    return (root / "images").is_dir() and any((root / name).is_dir() for name in _BESIDE)


IMAGES = Layout(
    name="images",
    title="folder of images beside their labels",
    looks_like=f"a folder images, and one of {', '.join(_BESIDE)} beside it",
    fits=_fits,
    is_picture=lambda parts: parts[0] == "images",
)
