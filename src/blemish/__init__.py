"""Corruption-robustness benchmarks for image classifiers: exact, batched, seeded, continuous."""

import os

# Threads that wait for work should sleep: while they spin, a busy machine gets little else done, torch included. Only a
# default, and without effect where torch is loaded already.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import Condition, parse_condition
from blemish.benchmarks.files import load_benchmark
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.chain import chain, random_severity
from blemish.corruptions.sequences import Sequence, sequences
from blemish.corruptions.severity import SeverityTable, nearest_preset
from blemish.data.open import open_source, open_stored
from blemish.data.source import Source
from blemish.evaluation.chance import NearChanceError
from blemish.evaluation.records import Records, read_records
from blemish.evaluation.runner import evaluate
from blemish.evaluation.runs import Run, find_runs, open_run
from blemish.metrics.compare import compare
from blemish.metrics.scores import score
from blemish.models.base import Classifier, Preprocessing, Training
from blemish.models.open import open_model
from blemish.models.torch_module import from_module
from blemish.reports.html import write_report
from blemish.rng import Words, hash_id
from blemish.transform import Corrupt, corrupt
from blemish.types import InputError, Notice, Shape
from blemish.version import VERSION

__version__ = VERSION

__all__ = [
    "Benchmark",
    "Catalog",
    "Classifier",
    "Condition",
    "Corrupt",
    "Corruption",
    "InputError",
    "NearChanceError",
    "Notice",
    "Preprocessing",
    "Protocol",
    "Records",
    "Run",
    "Sequence",
    "SeverityTable",
    "Shape",
    "Source",
    "Training",
    "Words",
    "catalog",
    "chain",
    "compare",
    "corrupt",
    "evaluate",
    "find_runs",
    "from_module",
    "hash_id",
    "load_benchmark",
    "nearest_preset",
    "open_model",
    "open_run",
    "open_source",
    "open_stored",
    "parse_condition",
    "random_severity",
    "read_records",
    "score",
    "sequences",
    "write_report",
]
