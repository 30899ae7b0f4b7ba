"""Corruption-robustness benchmarks for image classifiers: exact, batched, seeded, continuous."""

from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.chain import chain, random_severity
from blemish.corruptions.sequences import Sequence, sequences
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
    "Sequence",
    "SeverityTable",
    "Shape",
    "Words",
    "catalog",
    "chain",
    "corrupt",
    "hash_id",
    "nearest_preset",
    "random_severity",
    "sequences",
]
