"""One method on one stream: what it predicts, what that costs, and what can be seen of it without labels.

A run that is stopped goes on from its last state with the same result, bit for bit, whatever does the work.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.states import read_state, state_bytes
from blemish.studies.adaptation.base import Method, entropy
from blemish.studies.adaptation.norm import BatchStatistics
from blemish.studies.adaptation.own import Own
from blemish.studies.arena.course import Course
from blemish.studies.arena.images import MadeImages
from blemish.studies.arena.signals import concentration, density

_COLUMNS = ("prediction", "entropy", "concentration", "density", "adapted")
STATE_KEYS = ("done", "behind", "columns", "probes", "before", "seconds", "method")
_PROBES = 32
_AT_ONCE = 1024
"""Images of a clean set that are predicted at a time by methods that do not look at the others of a batch."""

Columns = dict[str, NDArray[Any]]

Tell = Callable[[int, bytes | None], None]


def _to_nobody(done: int, state: bytes | None) -> None:
    """Nothing is told."""


@dataclass(frozen=True)
class Pace:
    """How often results are told (in batches), and how often a state with them (in seconds)."""

    tell: int = 100
    save: float = 60.0


@dataclass(frozen=True)
class Adapted:
    """A finished stream: a row for each image, shares at probes, clean classes before and after, and what it took."""

    columns: Columns
    probes: tuple[float, ...]
    clean_before: tuple[int, ...]
    clean_after: tuple[int, ...]
    seconds: float
    memory: int | None


@dataclass
class _Progress:
    """What a state holds beside the method."""

    done: int = 0
    behind: int = 0
    chunks: list[dict[str, Tensor]] = field(default_factory=list)
    fresh: list[dict[str, Tensor]] = field(default_factory=list)
    probes: list[Tensor] = field(default_factory=list)
    before: Tensor | None = None
    seconds: float = 0.0

    def collect(self) -> None:
        """Bring what is new from the device."""
        if self.fresh:
            self.chunks.append({name: torch.cat([part[name] for part in self.fresh]).cpu() for name in _COLUMNS})
            self.fresh = []

    def columns(self) -> dict[str, Tensor]:
        """Everything as one."""
        self.collect()
        self.chunks = [{name: torch.cat([chunk[name] for chunk in self.chunks]) for name in _COLUMNS}]
        return self.chunks[0]


def adapt_over(
    method: Method,
    course: Course,
    images: MadeImages,
    *,
    batch: int,
    clean: Tensor | None = None,
    lag: int = 0,
    state: Path | None = None,
    pace: Pace = Pace(),  # noqa: B008  # it cannot be changed
    tell: Tell = _to_nobody,
) -> Adapted:
    """Show a course to a method, batch by batch.

    After each batch that it adapts to, it misses ``lag`` batches of its block and predicts them as it is. ``clean``
    images are predicted before and after, without adapting. ``tell`` hears how many images are done, and now and then
    a state, which a later call goes on from.
    """
    device = images.device
    progress = _Progress() if state is None else _restored(state, method)
    if progress.before is None:
        progress.before = _clean_classes(method, clean, batch)
    batches = [(a, b) for a, b in course.batches(batch) if a >= progress.done]
    every = max(1, math.ceil(sum(1 for _ in course.batches(batch)) / _PROBES))
    resets, blocks = set(course.resets), set(course.blocks)
    numbers = {a: number for number, (a, _) in enumerate(course.batches(batch))}
    watch = _Watch(device)
    saved = time.monotonic()
    for count, (start, stop) in enumerate(batches, start=1):
        shown = images.between(start, stop)
        if start in resets:
            method.reset()
        if start in blocks:
            progress.behind = 0  # a stream of its own begins
        late = progress.behind > 0
        watch.begin()
        logits = method.predict(shown) if late else method.adapt(shown)
        watch.end()
        progress.behind = progress.behind - 1 if late else lag
        progress.fresh.append(_described(logits, len(shown), adapted=not late))
        if (numbers[start] + 1) % every == 0:
            progress.probes.append(_same_in_the_mirror(method, shown))
        progress.done = stop
        if count % pace.tell == 0 and stop < len(course):
            progress.seconds += watch.read()
            progress.collect()
            due = time.monotonic() - saved >= pace.save and getattr(method, "resumable", True)
            tell(stop, _state(progress, method) if due else None)
            saved = time.monotonic() if due else saved
    progress.seconds += watch.read()
    after = _clean_classes(method, clean, batch)
    columns = {name: value.numpy() for name, value in progress.columns().items()}
    assert progress.before is not None
    return Adapted(
        columns,
        tuple(round(float(share), 6) for share in progress.probes),
        tuple(progress.before.tolist()),
        tuple(after.tolist()),
        progress.seconds,
        watch.memory(),
    )


def _described(logits: Tensor, count: int, *, adapted: bool) -> dict[str, Tensor]:
    """What is kept of a batch, all of it still on its device."""
    if logits.ndim != 2 or len(logits) != count:
        raise InputError(f"logits of shape {tuple(logits.shape)} for {count} images; expected one row for each")
    logits = logits.detach().to(torch.float32)
    sound = logits.isfinite().all(1)
    return {
        "prediction": torch.where(sound, logits.argmax(1), -1).to(torch.int32),
        "entropy": entropy(logits),
        "concentration": concentration(logits).expand(count),
        "density": density(logits).expand(count),
        "adapted": torch.full((count,), adapted, device=logits.device),
    }


def _same_in_the_mirror(method: Method, shown: Tensor) -> Tensor:
    """The share of images whose class is that of their mirror images, for the network as it is now."""
    return (method.predict(shown).argmax(1) == method.predict(shown.flip(-1)).argmax(1)).float().mean()


def _clean_classes(method: Method, clean: Tensor | None, batch: int) -> Tensor:
    """The classes of clean images, in batches of the stream's size, as a network may look at all of a batch."""
    if clean is None or len(clean) == 0:
        return torch.zeros(0, dtype=torch.int64)
    size = batch if batch > 1 else _AT_ONCE
    if batch == 1 and _looks_at_others(method):
        size = 1
    parts = list(torch.split(clean, size))
    if len(parts) > 1 and len(parts[-1]) == 1 and size > 1:  # a single image has no statistics
        parts = [*parts[:-2], torch.cat(parts[-2:])]
    return torch.cat([method.predict(part).argmax(1) for part in parts]).cpu()


def _looks_at_others(method: Method) -> bool:
    """Whether a network may classify an image otherwise beside other ones; only known methods are known not to."""
    model = getattr(method, "model", None)
    if model is None or isinstance(method, Own):
        return True
    return any(isinstance(layer, BatchStatistics) for layer in model.modules())


def _state(progress: _Progress, method: Method) -> bytes:
    return state_bytes(
        {
            "done": progress.done,
            "behind": progress.behind,
            "columns": progress.columns(),
            "probes": [float(share) for share in progress.probes],
            "before": progress.before,
            "seconds": progress.seconds,
            "method": method.state_dict(),
        }
    )


def _restored(state: Path, method: Method) -> _Progress:
    """How far a state is; the method goes on from it."""
    kept = read_state(state, STATE_KEYS)
    method.load_state_dict(kept["method"])
    probes = [torch.tensor(share) for share in kept["probes"]]
    return _Progress(kept["done"], kept["behind"], [kept["columns"]], [], probes, kept["before"], kept["seconds"])


class _Watch:
    """The time that a method takes, without the time that its images take; and the most memory of a GPU."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._events: list[tuple[Any, Any]] = []
        self._seconds = 0.0
        self._base = 0
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            self._base = torch.cuda.memory_allocated(device)

    def begin(self) -> None:
        """A method begins."""
        if self.device.type == "cuda":
            self._events.append((_event(), _event()))
            self._events[-1][0].record()
        else:
            self._start = time.perf_counter()

    def end(self) -> None:
        """It has done."""
        if self.device.type == "cuda":
            self._events[-1][1].record()
        else:
            self._seconds += time.perf_counter() - self._start

    def read(self) -> float:
        """Seconds since the last reading."""
        if self._events:
            torch.cuda.synchronize(self.device)
            self._seconds += sum(first.elapsed_time(last) for first, last in self._events) / 1000
            self._events = []
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def memory(self) -> int | None:
        """Bytes beyond those that were taken before; None where nobody counts."""
        if self.device.type != "cuda":
            return None
        return int(torch.cuda.max_memory_allocated(self.device)) - self._base


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
