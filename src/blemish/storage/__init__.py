"""Writing corrupted copies of pictures, class folders and array files to disk."""

from blemish.storage.arrays import corrupt_arrays
from blemish.storage.recipe import FORMATS, Recipe, make_recipe
from blemish.storage.results import Failure, Outcome, Progress
from blemish.storage.trees import corrupt_picture, corrupt_tree

__all__ = [
    "FORMATS",
    "Failure",
    "Outcome",
    "Progress",
    "Recipe",
    "corrupt_arrays",
    "corrupt_picture",
    "corrupt_tree",
    "make_recipe",
]
