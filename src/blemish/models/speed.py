"""Faster forward passes of torch modules: half precision, channels last, compiled. Each is asked for and recorded."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.models.base import Classifier, logits_of

_log = logging.getLogger(__name__)

Precision = Literal["float32", "float16", "bfloat16"]


def speed_up(
    model: Classifier, *, precision: Precision = "float32", channels_last: bool = True, compiled: bool = False
) -> Classifier:
    """The same classifier with faster forward passes.

    Half precisions run under autocast. ``compiled`` uses torch.compile; short batches are then filled up, because every
    new shape would be compiled anew. Predictions move by rounding, so the settings become part of the model's kind.
    """
    if precision not in get_args(Precision):
        raise InputError(f"precision {precision!r}; expected {', '.join(get_args(Precision))}")
    if precision == "float32" and not compiled and not channels_last:
        return model
    if model.module is None:
        raise InputError(f"model {model.name} ({model.kind}) is no torch module; it cannot be sped up here")
    recorded = [precision] * (precision != "float32") + ["compiled"] * compiled
    settings = {"precision": precision, "channels_last": channels_last, "compiled": compiled}
    return replace(
        model,
        forward=_Fast(model.module, model.forward, precision, channels_last, compiled),
        kind=model.kind + (f" ({', '.join(recorded)})" if recorded else ""),
        reopen=None if model.reopen is None else partial(_sped_up, model.reopen, settings),
    )


def slowly(model: Classifier) -> Classifier:
    """The model without what makes it faster, where one batch alone would have to be compiled."""
    return replace(model, forward=model.forward.plain) if isinstance(model.forward, _Fast) else model


def compile_seconds(model: Classifier) -> float | None:
    """How long compiling took, for a compiled model that has been used."""
    return model.forward.seconds if isinstance(model.forward, _Fast) else None


def note_compiling(model: Classifier, seconds: float) -> None:
    """Keep how long it took where the model was used, in another process; the longest of several."""
    if isinstance(model.forward, _Fast):
        model.forward.seconds = max(model.forward.seconds or 0.0, seconds)


def fill_batches(model: Classifier, size: int) -> None:
    """Let a compiled model fill up batches to this size from the first on; others are left alone.

    Rounding depends on the size that was compiled, and a worker's first batch may be the short one.
    """
    if isinstance(model.forward, _Fast):
        model.forward.size = size


@dataclass
class _Fast:
    """Forward passes of a module; the plain ones know how to explain what goes wrong."""

    module: nn.Module
    plain: Any
    precision: Precision
    channels_last: bool
    compiled: bool
    seconds: float | None = field(default=None, init=False)
    _run: Any = field(default=None, init=False, repr=False)
    size: int = field(default=0, init=False, repr=False)
    _ready: int = field(default=0, init=False, repr=False)

    def __call__(self, values: Tensor) -> Tensor:
        if self._run is None:
            self._prepare()
        kind = getattr(self.plain, "half", None) or getattr(torch, self.precision)
        with torch.autocast(values.device.type, kind, enabled=self.precision != "float32"):
            if not self.compiled:
                return self._run(self._laid_out(values, kind))  # type: ignore[no-any-return]
            try:
                return self._filled_up(values, kind)
            except torch.cuda.OutOfMemoryError:
                _log.info("no memory for a compiled batch of %d", self.size)
                self.size = 0  # or the smaller batches that follow would be filled up to the size that did not fit
                raise

    def _laid_out(self, values: Tensor, kind: torch.dtype) -> Tensor:
        last = self.channels_last and values.ndim == 4
        return values.to(kind, memory_format=torch.channels_last if last else torch.preserve_format)

    def __getstate__(self) -> dict[str, Any]:
        """What was compiled stays in the process that did it."""
        return {**self.__dict__, "_run": None, "size": 0, "_ready": 0, "seconds": None}

    def _prepare(self) -> None:
        self.module.eval()
        if self.channels_last:
            self.module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self._run = torch.compile(self.module, dynamic=False) if self.compiled else self.plain

    def _filled_up(self, values: Tensor, kind: torch.dtype) -> Tensor:
        count = len(values)
        self.size = max(self.size, count)
        if count < self.size:
            values = torch.cat([values, values[:1].expand(self.size - count, *values.shape[1:])])
        # After filling up: what is compiled depends on how values lie in memory.
        values = self._laid_out(values, kind)
        start = time.perf_counter()
        scores = logits_of(self._run(values))
        if not isinstance(scores, Tensor) or scores.ndim == 0 or len(scores) != self.size:
            shape = f"shape {tuple(scores.shape)}" if isinstance(scores, Tensor) else f"type {type(scores).__name__}"
            raise InputError(f"an output of {shape} for {self.size} images; expected one row of class scores per image")
        scores = scores[:count]
        if self._ready != self.size:
            if scores.device.type == "cuda":
                torch.cuda.synchronize(scores.device)
            self._ready = self.size
            self.seconds = (self.seconds or 0.0) + time.perf_counter() - start
            _log.info("the model was compiled for batches of %d, %.1f s in all", self.size, self.seconds)
        return scores


def _sped_up(
    reopen: Callable[[torch.device], Classifier], settings: dict[str, Any], device: torch.device
) -> Classifier:
    """Open a model in another process, as fast as it was in this one."""
    return speed_up(reopen(device), **settings)
