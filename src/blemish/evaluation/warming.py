"""First uses on a GPU, while images are still being read: the network and the kernels of corruptions are got ready.

The first call of a kernel compiles it, or reads it from where an earlier process left it, and so does that of a network
that is compiled. Nothing that is measured comes from here, and nothing depends on how far it gets.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Self

import torch

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import Condition
from blemish.core.types import Shape, Square
from blemish.data.cache import known_shape
from blemish.data.source import Source
from blemish.evaluation.pixels import as_stored, centre, frame_probabilities
from blemish.evaluation.plan import even_batch_size, most_in_batch
from blemish.evaluation.runs import record_path
from blemish.models.base import Classifier
from blemish.models.speed import fill_batches

_log = logging.getLogger(__name__)

# Images that a corruption is tried on, and frames of a sequence.
_FEW = 2


def warming(
    model: Classifier, benchmark: Benchmark, source: Source, folder: Path, stage: int, batch_size: int | None
) -> contextlib.AbstractContextManager[object]:
    """What to read the images of a stage in.

    It does nothing on a CPU, where only decoding tells the size of images, or where the folder has all records.
    """
    protocol = benchmark.protocol
    late = protocol.view if benchmark.has_sequences else None
    shape = known_shape(source, protocol.resize, None if benchmark.has_sequences else protocol.view)
    made = [condition for condition in benchmark.conditions if condition.other is None]
    missing = [condition for condition in made if not record_path(folder, condition, stage).is_file()]
    if model.device.type == "cpu" or shape is None or not missing:
        return contextlib.nullcontext()
    size = batch_size or even_batch_size(most_in_batch(math.prod(shape), model.device), len(source))
    return Warming(model, missing, protocol, Shape(*shape), batch_size=min(size, len(source)), crop=late)


class Warming:
    """A thread that calls everything once that a run will call; it stops after a call when the block is left.

    ``batch_size`` is that of the run, for which a network is compiled; ``crop`` is still to be cut from images of this
    shape. What fails here is left to the run, which explains it.
    """

    def __init__(
        self,
        model: Classifier,
        conditions: Sequence[Condition],
        protocol: Protocol,
        shape: Shape,
        *,
        batch_size: int,
        crop: int | Square | None = None,
    ) -> None:
        self._model, self._conditions, self._protocol = model, conditions, protocol
        self._shape, self._batch_size, self._crop = shape, batch_size, crop
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="blemish-warming")
        self.done = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _work(self) -> None:
        start = time.perf_counter()
        for call in self._calls():
            if self._stop.is_set():
                break
            try:
                call()
            except Exception as error:
                _log.debug("not ready beforehand: %s", error)
            else:
                self.done += 1
        _log.info("%d first uses while images were read, %.1f s", self.done, time.perf_counter() - start)

    def _calls(self) -> Iterator[Callable[[], object]]:
        yield partial(importlib.import_module, "pyarrow.parquet")  # which the first records would wait for
        if self._model.module is not None:  # a function of somebody else's may count its calls
            yield self._network
        for condition in self._conditions:
            if condition.steps:
                yield partial(self._frames if condition.is_sequence else self._corrupted, condition)

    def _few(self) -> torch.Tensor:
        return torch.zeros(_FEW, *self._shape, dtype=torch.uint8, device=self._model.device)

    def _shown(self) -> torch.Tensor:
        return self._few() if self._crop is None else centre(self._few(), self._crop)

    @torch.inference_mode()
    def _network(self) -> None:
        fill_batches(self._model, self._batch_size)
        # As many as in the run: which kernels are fast depends on it.
        batch = self._shown()[:1].expand(self._batch_size, -1, -1, -1).contiguous()
        self._model.forward(self._model.preprocessing(batch))

    def _corrupted(self, condition: Condition) -> None:
        protocol = self._protocol
        made = condition.apply(self._shown(), seed=protocol.seed, ids=torch.arange(_FEW), preset=protocol.preset)
        as_stored(made, protocol.storage)

    def _frames(self, condition: Condition) -> None:
        frames = frame_probabilities(
            lambda images: images, condition, self._few(), torch.arange(_FEW), self._protocol, self._crop, _FEW
        )
        list(islice(frames, _FEW))
