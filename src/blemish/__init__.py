"""Corruption-robustness benchmarks for image classifiers: exact, batched, seeded, continuous."""

from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.severity import SeverityTable, nearest_preset
from blemish.rng import Words, hash_id
from blemish.transform import Corrupt, corrupt
from blemish.types import InputError, Shape
from blemish.version import VERSION

__version__ = VERSION

__all__ = [
    "Catalog",
    "Corrupt",
    "Corruption",
    "InputError",
    "SeverityTable",
    "Shape",
    "Words",
    "catalog",
    "corrupt",
    "hash_id",
    "nearest_preset",
]
