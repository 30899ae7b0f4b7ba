"""Writing corrupted copies of pictures, class folders and array files to disk."""

from blemish.export.arrays import corrupt_arrays
from blemish.export.outcome import Failure, Outcome
from blemish.export.recipe import FORMATS, Recipe, make_recipe
from blemish.export.trees import corrupt_picture, corrupt_tree

__all__ = [
    "FORMATS",
    "Failure",
    "Outcome",
    "Recipe",
    "corrupt_arrays",
    "corrupt_picture",
    "corrupt_tree",
    "make_recipe",
]
