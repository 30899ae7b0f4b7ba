"""What `evaluate` may be asked for: texts, lists and functions become a benchmark, a classifier and a folder."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import SEQUENCES, Condition, parse_condition
from blemish.benchmarks.files import UnknownBenchmarkError, load_benchmark
from blemish.core.errors import InputError
from blemish.core.printable import first_few
from blemish.core.user_folders import cache_folder
from blemish.data.source import Source
from blemish.models.base import Classifier
from blemish.models.open import open_model
from blemish.models.python_function import FUNCTION, from_python

AskedModel = Classifier | nn.Module | Callable[[Tensor], Any] | str
AskedBenchmark = Benchmark | str | os.PathLike[str] | Sequence[str | Condition]

_LEVELS = range(1, 6)
_SHOWN = 3


def as_benchmark(benchmark: AskedBenchmark) -> Benchmark:
    """A benchmark by name, from a file, or of a list: ``["fog", "snow@3"]`` is fog at 1 to 5 and snow at 3.

    >>> [str(condition) for condition in as_benchmark(["fog", "snow@3"]).conditions]
    ['clean', 'fog@1', 'fog@2', 'fog@3', 'fog@4', 'fog@5', 'snow@3']
    """
    if isinstance(benchmark, Benchmark):
        return benchmark
    if isinstance(benchmark, (str, os.PathLike)):
        try:
            return load_benchmark(benchmark)
        except UnknownBenchmarkError as error:
            raise InputError(f"{error}{_as_a_list(str(benchmark))}") from error
    if not isinstance(benchmark, Sequence):
        kind = type(benchmark).__name__
        raise InputError(f"a benchmark of type {kind}; expected a name, a file, a Benchmark or a list of conditions")
    conditions = tuple(condition for item in benchmark for condition in _conditions(item))
    if not conditions:
        raise InputError("an empty list of conditions; expected at least one, such as fog or fog@3")
    sequences = bool(conditions) and all(condition.is_sequence for condition in conditions)
    name = first_few([str(item) for item in benchmark], _SHOWN)
    return Benchmark(name, "", "flips" if sequences else "error", conditions)


def _as_a_list(text: str) -> str:
    """How to ask for what is called like no benchmark, but like conditions."""
    parts = [part.strip() for part in text.split(",")]
    try:
        for part in parts:
            list(_conditions(part))
    except InputError:
        return ""
    return f". Conditions are given as a list: {parts}"


def _conditions(item: str | Condition) -> Iterator[Condition]:
    if isinstance(item, Condition):
        yield item
    elif not isinstance(item, str):
        raise InputError(f"a condition of type {type(item).__name__}; expected a text such as fog or fog@3")
    elif "@" in item or item == "clean" or item.startswith("natural:"):
        yield parse_condition(item)
    else:
        levels = (1,) if item.startswith(SEQUENCES) else _LEVELS
        yield from (parse_condition(f"{item}@{level}") for level in levels)


def as_classifier(model: AskedModel, name: str | None) -> Classifier:
    """A classifier of a torch module, a scikit-learn estimator, a function of uint8 batches, or a text."""
    if isinstance(model, str):
        classifier = open_model(model)
    elif isinstance(model, Classifier):
        classifier = model
    else:
        given = name or getattr(model, "__name__", None) or type(model).__name__
        classifier = from_python(model, name=given, device=None)
    return classifier if name is None else replace(classifier, name=name)


def results_folder(benchmark: Benchmark, model: Classifier, source: Source) -> Path:
    """A folder of the user's cache for the results of exactly this, so that the same call finds them again.

    What a bare function does cannot be seen from outside; it gets a new folder every time.
    """
    root = cache_folder() / "results"
    if model.kind == FUNCTION:
        root.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="function-", dir=root))
    count = len(source)
    ends = [source.read(row).tobytes() for row in sorted({0, count // 2, count - 1})] if count else []
    facts = {
        "benchmark": [benchmark.name, benchmark.metric, asdict(benchmark.protocol), [*map(str, benchmark.conditions)]],
        "model": model.describe(),
        "data": [source.name, count, hashlib.blake2b(source.labels.tobytes()).hexdigest()],
        "classes": [source.labelling, source.classes],  # by which labels become a model's outputs
        "pixels": [hashlib.blake2b(pixels).hexdigest() for pixels in ends],
    }
    digest = hashlib.blake2b(json.dumps(facts, sort_keys=True, default=str).encode(), digest_size=8).hexdigest()
    return root / digest
