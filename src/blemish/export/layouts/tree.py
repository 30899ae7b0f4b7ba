"""Any tree of pictures, with class folders or without."""

from __future__ import annotations

from blemish.export.layouts.base import Layout

TREE = Layout(
    name="tree",
    title="folder of pictures",
    looks_like="a folder with pictures in it, or in folders below",
    fits=lambda _: True,
    is_picture=lambda _: True,
    labels=False,
)
