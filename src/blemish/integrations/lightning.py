"""A callback of Lightning that measures a network while it is trained."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.data.open import open_source
from blemish.evaluation.arguments import AskedBenchmark, as_benchmark
from blemish.evaluation.fitting import fit
from blemish.evaluation.run import evaluate
from blemish.evaluation.runs import Run
from blemish.metrics.baselines import Baseline
from blemish.metrics.scored import Scores
from blemish.metrics.scores import score
from blemish.models.base import Classifier
from blemish.models.own_preprocessing import Preprocessed
from blemish.models.torch_module import from_module

_package = "lightning.pytorch"
if importlib.util.find_spec("lightning") is None and importlib.util.find_spec("pytorch_lightning") is not None:
    _package = "pytorch_lightning"
_Callback: Any = optional_import(_package).Callback
_log = logging.getLogger(__name__)

FOLDER = "robustness"


class RobustnessCallback(_Callback):
    """Measure the module on a benchmark after every ``every_n_epochs`` epochs, and log its numbers.

    The benchmark is a name, a file or a list of conditions, as `blemish.evaluate` takes it.

    What is logged through ``trainer.logger``, with ``prefix`` before it: the benchmark's own metric (``mce`` for
    ImageNet-C, in percent) where it can be computed, the mean error over all conditions and the clean error.

    ``data`` are images with labels as `blemish.open_source` takes them, not normalised: ``preprocessing`` is what the
    module expects, as `blemish.from_module` takes it. The records of each epoch are kept below ``out``, by default the
    folder ``robustness`` beside the logger's files (``folder``, once the training has begun); ``runs`` and ``scores``
    hold them by epoch, counted from 0 as Lightning does. With several processes the first measures and the others wait;
    strategies that spread a module's weights over processes (FSDP, DeepSpeed stage 3) cannot be measured in this way.
    """

    def __init__(
        self,
        benchmark: AskedBenchmark,
        every_n_epochs: int = 1,
        *,
        data: Any,
        preprocessing: Preprocessed | None = None,
        out: str | os.PathLike[str] | None = None,
        baseline: Baseline | Run | str | None = None,
        limit: int | None = None,
        batch_size: int | None = None,
        prefix: str = "robustness/",
    ) -> None:
        """Check what can be checked before a network is trained."""
        super().__init__()
        if not isinstance(every_n_epochs, int) or isinstance(every_n_epochs, bool) or every_n_epochs < 1:
            raise InputError(f"every_n_epochs {every_n_epochs!r}; expected a whole number from 1")
        self.benchmark = as_benchmark(benchmark)
        for condition in self.benchmark.conditions:
            condition.check_files()
        self.source = open_source(data)
        self.every_n_epochs, self.prefix = every_n_epochs, prefix
        self.preprocessing, self.baseline = preprocessing, baseline
        self.limit, self.batch_size = limit, batch_size
        self._out = out
        self.folder: Path | None = None
        self.runs: dict[int, Run] = {}
        self.scores: dict[int, Scores] = {}

    def on_fit_start(self, trainer: Any, pl_module: nn.Module) -> None:
        """Find the folder, and refuse before the training what would be refused after it.

        A folder with results of epochs that are still to come holds those of other weights.
        """
        beside = Path(trainer.log_dir or trainer.default_root_dir)
        folder = self.folder = beside / FOLDER if self._out is None else Path(self._out)
        names = [path.name for path in folder.glob("epoch-*")] if folder.is_dir() else []
        numbers = [int(match[1]) for name in names if (match := re.fullmatch(r"epoch-(\d+)", name))]
        if later := [number for number in numbers if number >= trainer.current_epoch]:
            raise InputError(
                f"{folder}: holds results of epoch {min(later)} already, and this training begins with epoch "
                f"{trainer.current_epoch}; name another folder (out=…) or remove it"
            )
        if trainer.is_global_zero:
            protocol = self.benchmark.protocol
            with self._classifier(pl_module) as classifier:
                fit(classifier, self.source, resize=protocol.resize, crop=protocol.view)

    def on_train_epoch_end(self, trainer: Any, pl_module: nn.Module) -> None:
        """Measure and log, where it is time to."""
        epoch = int(trainer.current_epoch)
        if (epoch + 1) % self.every_n_epochs:
            return
        if trainer.is_global_zero:
            self._measure(trainer, pl_module, epoch)
        trainer.strategy.barrier()

    @contextlib.contextmanager
    def _classifier(self, module: nn.Module) -> Iterator[Classifier]:
        """The module as a classifier, for a while: it is put into evaluation mode, and then back."""
        modes = {part: part.training for part in module.modules()}
        try:
            yield from_module(module, preprocessing=self.preprocessing)
        finally:
            for part, training in modes.items():
                part.training = training

    def _measure(self, trainer: Any, module: nn.Module, epoch: int) -> None:
        assert self.folder is not None  # Lightning has called on_fit_start
        with self._classifier(module) as classifier:
            run = evaluate(
                classifier,
                self.source,
                self.benchmark,
                out=self.folder / f"epoch-{epoch:03d}",
                limit=self.limit,
                batch_size=self.batch_size,
                allow_chance=True,  # as a network is in its first epochs
            )
        self.runs[epoch] = run
        scores = self.scores[epoch] = score(run, baseline=self.baseline)
        if scores.headline is None:
            why = "; ".join(item.why for item in scores.missing if scores.metric in item.names)
            _log.warning("epoch %d: %s of %s is not logged: %s", epoch, scores.metric, scores.benchmark, why)
        numbers = {f"{self.prefix}{name}": value for name, value in _logged(scores).items()}
        for logger in trainer.loggers:
            logger.log_metrics(numbers, step=trainer.global_step)


def _logged(scores: Scores) -> dict[str, float]:
    """The numbers of the whole benchmark by their names, and the clean error."""
    numbers = {row.name: row.estimate.value for row in scores.select(scope="benchmark")}
    return numbers | {"clean_error": scores.find("error", "clean").estimate.value}
