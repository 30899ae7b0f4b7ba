"""Cityscapes: pictures in ``leftImg8bit``, whose readers expect PNG; ``gtFine`` and all else are labels."""

from __future__ import annotations

from blemish.export.layouts.base import Layout

_PICTURES = "leftImg8bit"

CITYSCAPES = Layout(
    name="cityscapes",
    title="Cityscapes folder",
    looks_like=f"a folder {_PICTURES} in it",
    fits=lambda root: (root / _PICTURES).is_dir(),
    is_picture=lambda parts: parts[0] == _PICTURES,
    formats=("png",),
)
