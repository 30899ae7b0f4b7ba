"""Corruption-robustness benchmarks for image classifiers: exact, batched, seeded, continuous.

Names are imported when they are first used, so that nothing waits for what it does not need.
"""

import importlib
import logging
from typing import TYPE_CHECKING, Any

from blemish.version import VERSION

if TYPE_CHECKING:
    from blemish.benchmarks.benchmark import Benchmark, Protocol
    from blemish.benchmarks.condition import Condition, parse_condition
    from blemish.benchmarks.files import load_benchmark
    from blemish.core.errors import BlemishError, InputError, Notice, StorageError, WorkerError
    from blemish.core.rng import CounterRng, hash_id
    from blemish.core.types import Shape
    from blemish.corruptions.base import Corruption
    from blemish.corruptions.catalog import Catalog, catalog
    from blemish.corruptions.compose import chain, random_severity
    from blemish.corruptions.imagenet_p import PerturbationSequence, sequences
    from blemish.corruptions.labels import Corrupted
    from blemish.corruptions.severity import SeverityTable, nearest_preset
    from blemish.corruptions.transform import Corrupt, corrupt
    from blemish.data.open import open_source, open_stored
    from blemish.data.source import Source
    from blemish.evaluation.chance import NearChanceError
    from blemish.evaluation.records import Records, read_records
    from blemish.evaluation.run import evaluate
    from blemish.evaluation.runs import Run, find_runs, open_run
    from blemish.metrics.compare import compare
    from blemish.metrics.results import load_results
    from blemish.metrics.scored import Scores
    from blemish.metrics.scores import score
    from blemish.models.base import Classifier, Preprocessing, Training
    from blemish.models.open import open_model
    from blemish.models.python_function import from_function
    from blemish.models.torch_module import from_module
    from blemish.reports.html import write_report
    from blemish.studies.audit.audit import audit
    from blemish.studies.audit.of_runs import audit_run
    from blemish.tasks.predictions import read_predictions

__version__ = VERSION

logging.getLogger(__name__).addHandler(logging.NullHandler())  # quiet, unless the program says otherwise

__all__ = [
    "Benchmark",
    "BlemishError",
    "Catalog",
    "Classifier",
    "Condition",
    "Corrupt",
    "Corrupted",
    "Corruption",
    "CounterRng",
    "InputError",
    "NearChanceError",
    "Notice",
    "PerturbationSequence",
    "Preprocessing",
    "Protocol",
    "Records",
    "Run",
    "Scores",
    "SeverityTable",
    "Shape",
    "Source",
    "StorageError",
    "Training",
    "WorkerError",
    "audit",
    "audit_run",
    "catalog",
    "chain",
    "compare",
    "corrupt",
    "evaluate",
    "find_runs",
    "from_function",
    "from_module",
    "hash_id",
    "load_benchmark",
    "load_results",
    "nearest_preset",
    "open_model",
    "open_run",
    "open_source",
    "open_stored",
    "parse_condition",
    "random_severity",
    "read_predictions",
    "read_records",
    "score",
    "sequences",
    "write_report",
]

_MODULES = {
    "Benchmark": "benchmarks.benchmark",
    "BlemishError": "core.errors",
    "Catalog": "corruptions.catalog",
    "Classifier": "models.base",
    "Condition": "benchmarks.condition",
    "Corrupt": "corruptions.transform",
    "Corrupted": "corruptions.labels",
    "Corruption": "corruptions.base",
    "InputError": "core.errors",
    "NearChanceError": "evaluation.chance",
    "Notice": "core.errors",
    "Preprocessing": "models.base",
    "Protocol": "benchmarks.benchmark",
    "Records": "evaluation.records",
    "Run": "evaluation.runs",
    "Scores": "metrics.scored",
    "PerturbationSequence": "corruptions.imagenet_p",
    "SeverityTable": "corruptions.severity",
    "Shape": "core.types",
    "Source": "data.source",
    "StorageError": "core.errors",
    "Training": "models.base",
    "WorkerError": "core.errors",
    "CounterRng": "core.rng",
    "audit": "studies.audit.audit",
    "audit_run": "studies.audit.of_runs",
    "catalog": "corruptions.catalog",
    "chain": "corruptions.compose",
    "compare": "metrics.compare",
    "corrupt": "corruptions.transform",
    "evaluate": "evaluation.run",
    "find_runs": "evaluation.runs",
    "from_function": "models.python_function",
    "from_module": "models.torch_module",
    "hash_id": "core.rng",
    "load_benchmark": "benchmarks.files",
    "load_results": "metrics.results",
    "nearest_preset": "corruptions.severity",
    "open_model": "models.open",
    "open_run": "evaluation.runs",
    "open_source": "data.open",
    "open_stored": "data.open",
    "parse_condition": "benchmarks.condition",
    "random_severity": "corruptions.compose",
    "read_predictions": "tasks.predictions",
    "read_records": "evaluation.records",
    "score": "metrics.scores",
    "sequences": "corruptions.imagenet_p",
    "write_report": "reports.html",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'blemish' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"blemish.{_MODULES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
