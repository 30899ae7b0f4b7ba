"""How folders of pictures are laid out: which files are the pictures, and which are labels that belong to them."""

from __future__ import annotations

from pathlib import Path

from blemish.core.errors import InputError
from blemish.export.layouts.base import Layout
from blemish.export.layouts.cityscapes import CITYSCAPES
from blemish.export.layouts.coco import COCO
from blemish.export.layouts.images import IMAGES
from blemish.export.layouts.tree import TREE
from blemish.export.layouts.voc import VOC

__all__ = ["LAYOUTS", "TREE", "Layout", "find_layout"]

LAYOUTS = {layout.name: layout for layout in (CITYSCAPES, VOC, COCO, IMAGES, TREE)}
"""In the order in which folders are looked at; every folder is a tree.

Cityscapes and VOC come before COCO: converted to COCO's annotations, they keep their maps of labels beside them.
"""


def find_layout(root: Path, name: str | None = None) -> Layout:
    """The layout of that name, or the first that a folder has."""
    if name is None:
        return next(layout for layout in LAYOUTS.values() if layout.fits(root))
    if name not in LAYOUTS:
        raise InputError(f"unknown layout {name!r}; expected {', '.join(LAYOUTS)}")
    layout = LAYOUTS[name]
    if not layout.fits(root):
        raise InputError(f"{root}: no {layout.title}; expected {layout.looks_like}")
    return layout
