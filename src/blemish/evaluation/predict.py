"""From batches of images to the columns of records: forward passes, ranking, and batches that shrink to fit memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from blemish.benchmarks.benchmark import POOLS
from blemish.core.errors import InputError
from blemish.evaluation.records import TOP

Result = TypeVar("Result")


class Columns(NamedTuple):
    """What is kept of a batch of predictions, on the device that made them: nothing waits for the host."""

    top5: Tensor
    confidence: Tensor
    label_confidence: Tensor


def fetched(parts: Sequence[Tensor]) -> Callable[[], Tensor]:
    """Tensors one below the other, on their way to the CPU; calling the result waits for them to arrive."""
    joined = torch.cat(list(parts))
    on_cpu = joined.to("cpu", non_blocking=True)
    if joined.device.type != "cuda":
        return lambda: on_cpu
    arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
    device = joined.device
    arrived.record(torch.cuda.current_stream(device))

    def wait() -> Tensor:
        with torch.cuda.device(device):  # or another thread would open its first device as well
            arrived.synchronize()
        return on_cpu

    return wait


def join_columns(parts: Sequence[Columns]) -> Callable[[], Columns]:
    """Columns one below the other; calling the result waits for them and refuses predictions that are not numbers."""
    waiting = [fetched(column) for column in zip(*parts, strict=True)]

    def joined() -> Columns:
        columns = Columns(*(column() for column in waiting))
        if not bool(torch.isfinite(columns.confidence).all() & torch.isfinite(columns.label_confidence).all()):
            raise InputError("the model gave probabilities that are not numbers; its predictions cannot be ranked")
        return columns

    return joined


class Grouping:
    """Probabilities of a set's own classes out of the model's: those of the members of a class are pooled.

    Without groups the model's classes are the set's. ``pool`` says what counts of the members: the largest (``max``),
    their ``mean``, or their ``sum``. Probabilities are not rescaled to the classes that are left, so that with ``max``
    and ``mean`` those of all classes do not sum to 1.
    """

    def __init__(self, groups: Sequence[Sequence[int]] | None, pool: str = "max") -> None:
        if pool not in POOLS:
            raise InputError(f"pool {pool!r}; expected {', '.join(POOLS)}")
        self._index: Tensor | None = None
        self._pool = pool
        if groups is not None:
            widest = max(len(group) for group in groups)
            # Repeating a member does not change the largest. A sum needs zeros, which will stand behind the last class.
            filled = [[*group, *[group[0] if pool == "max" else -1] * (widest - len(group))] for group in groups]
            self._index = torch.tensor(filled)
            self._counts = torch.tensor([float(len(group)) for group in groups])
            self._needed = max(map(max, groups))

    def __call__(self, probabilities: Tensor) -> Tensor:
        """(B, classes of the model) to (B, classes of the set)."""
        if self._index is None:
            return probabilities
        if self._needed >= probabilities.shape[1]:
            raise InputError(f"a model with {probabilities.shape[1]} classes for a set that needs class {self._needed}")
        if self._index.device != probabilities.device:
            self._index, self._counts = (values.to(probabilities.device) for values in (self._index, self._counts))
        members = torch.nn.functional.pad(probabilities, (0, 1))[:, self._index]
        if self._pool == "max":
            return members.amax(-1)
        total = members.sum(-1)
        return total if self._pool == "sum" else total / self._counts


def rank(probabilities: Tensor, labels: Tensor, top_label: int) -> Columns:
    """The top five, and the probabilities of the first and of the label; ties go to the lower class number.

    ``top_label`` is the largest label of the set: it is known on the host, where the check costs nothing.
    """
    classes = probabilities.shape[1]
    if top_label >= classes:
        raise InputError(f"label {top_label} for a model with {classes} classes; expected labels below {classes}")
    kept = min(TOP, classes)
    ordered = torch.sort(probabilities, dim=1, descending=True, stable=True)
    top5 = torch.full((len(probabilities), TOP), -1, dtype=torch.int32, device=probabilities.device)
    top5[:, :kept] = ordered.indices[:, :kept]
    return Columns(top5, ordered.values[:, 0], probabilities.gather(1, labels[:, None])[:, 0])


class Batcher:
    """Work on rows in batches, of a size that is halved whenever the device runs out of memory."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise InputError(f"batch size {size}; expected at least 1")
        self.size = size

    def map(self, work: Callable[[list[int]], Result], rows: Sequence[int]) -> Iterator[tuple[list[int], Result]]:
        """Each batch of rows, in order, with what became of it."""
        start = 0
        while start < len(rows):
            batch = list(rows[start : start + self.size])
            result = self._attempt(work, batch)
            if result is not None:
                start += len(batch)
                yield batch, result

    def _attempt(self, work: Callable[[list[int]], Result], batch: list[int]) -> Result | None:
        try:
            return work(batch)
        except torch.cuda.OutOfMemoryError as error:
            if len(batch) == 1:
                raise InputError("the device has too little memory for a single image") from error
        # After the handler, because the error keeps the tensors of the failed attempt alive.
        torch.cuda.empty_cache()
        self.size = max(1, len(batch) // 2)
        return None
