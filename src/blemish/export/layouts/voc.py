"""PASCAL VOC: pictures in ``JPEGImages``, which readers open as ``<id>.jpg``; masks in PNG are labels."""

from __future__ import annotations

from pathlib import Path

from blemish.export.layouts.base import Layout

_PICTURES = "JPEGImages"


def _fits(root: Path) -> bool:
    """The folder of a year, or one with several of those."""
    patterns = (_PICTURES, f"*/{_PICTURES}", f"*/*/{_PICTURES}")
    return any(path.is_dir() for pattern in patterns for path in root.glob(pattern))


VOC = Layout(
    name="voc",
    title="PASCAL VOC folder",
    looks_like=f"a folder {_PICTURES} in it, or up to two folders below",
    fits=_fits,
    is_picture=lambda parts: _PICTURES in parts[:-1],
    formats=("jpeg",),
)
