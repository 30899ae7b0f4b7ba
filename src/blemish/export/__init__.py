"""Writing corrupted copies of pictures, folders of them, tables, archives and array files to disk."""

from blemish.export.arrays import corrupt_arrays
from blemish.export.containers import find_container
from blemish.export.layouts import LAYOUTS, find_layout
from blemish.export.outcome import Failure, Outcome
from blemish.export.recipe import Recipe, make_recipe
from blemish.export.rewriting import corrupt_container
from blemish.export.trees import corrupt_picture, corrupt_tree

__all__ = [
    "LAYOUTS",
    "Failure",
    "Outcome",
    "Recipe",
    "corrupt_arrays",
    "corrupt_container",
    "corrupt_picture",
    "corrupt_tree",
    "find_container",
    "find_layout",
    "make_recipe",
]
