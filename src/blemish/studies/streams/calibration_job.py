"""Calibration as workers do it: the model and the images of a bench, opened once, then pair by pair."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.folders import temporary_folder
from blemish.evaluation.executors.base import Executor, Tell
from blemish.evaluation.executors.tensors import shared_tensor
from blemish.models.base import Classifier
from blemish.models.portable import Portable, portable
from blemish.studies.streams.bench import Bench, Predict
from blemish.studies.streams.surface import Surface

__all__ = ["BenchJob", "bench_job"]

Pair = tuple[str, str]
Measure = Callable[[Bench, Pair], Surface]


@dataclass(frozen=True)
class BenchJob:
    """Measures pairs on a bench: the one of this process, or one that is set up anew with ``images``."""

    bench: Bench | None
    measure: Measure
    images: Callable[[], Tensor] | None = None
    predict: Predict | Portable | None = None
    settings: Mapping[str, Any] | None = None
    mark: str = ""

    def open(self, device: torch.device | None) -> Callable[[Pair, Tell], Surface]:
        """Set the bench up; a worker that sees other images is refused."""
        bench = self.bench
        if bench is None:
            assert self.images is not None
            assert self.predict is not None
            place = device or torch.device("cpu")
            predict = self.predict.open(place) if isinstance(self.predict, Portable) else self.predict
            bench = Bench(predict, self.images().to(place), **(self.settings or {}))
            if bench.describe()["data_fingerprint"] != self.mark:
                raise InputError("a worker sees other images than this calibration; expected the same files")
        ready = bench
        return lambda pair, _: self.measure(ready, pair)


@contextlib.contextmanager
def bench_job(
    bench: Bench, measure: Measure, executor: Executor, again: Callable[[], Tensor] | None = None
) -> Iterator[BenchJob]:
    """The job for an executor; ``again`` makes the images on other machines."""
    if executor.reach == "process":
        yield BenchJob(bench, measure)
        return
    predict = portable(bench.predict) if isinstance(bench.predict, Classifier) else bench.predict
    settings = {
        "labels": bench.labels.cpu(),
        "ids": bench.ids,
        "seed": bench.seed,
        "preset": bench.preset,
        "batch": bench.batch,
        "grid": bench.grid,
        "catalog": bench.catalog,
    }
    with (
        temporary_folder() as folder,
        shared_tensor(bench.images, executor.reach, folder / "images", again) as images,
    ):
        yield BenchJob(None, measure, images, predict, settings, str(bench.describe()["data_fingerprint"]))
