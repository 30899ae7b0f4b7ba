"""From batches of images to the columns of records: forward passes, ranking, and batches that shrink to fit memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from blemish.evaluation.records import TOP
from blemish.types import InputError

__all__ = ["Batcher", "Columns", "Grouping", "join_columns", "rank"]

Result = TypeVar("Result")


class Columns(NamedTuple):
    """What is kept of a batch of predictions, on the device that made them: nothing waits for the host."""

    top5: Tensor
    confidence: Tensor
    label_confidence: Tensor


def join_columns(parts: Sequence[Columns]) -> Columns:
    """Columns one below the other, on the CPU; predictions that are not numbers are refused here, once."""
    joined = Columns(*(torch.cat(column).cpu() for column in zip(*parts, strict=True)))
    if not bool(torch.isfinite(joined.confidence).all() & torch.isfinite(joined.label_confidence).all()):
        raise InputError("the model gave probabilities that are not numbers; its predictions cannot be ranked")
    return joined


class Grouping:
    """Probabilities of a set's own classes out of the model's: of the members of a class the largest counts.

    Without groups the model's classes are the set's. Probabilities are not rescaled to the classes that are left.
    """

    def __init__(self, groups: Sequence[Sequence[int]] | None) -> None:
        self._index: Tensor | None = None
        if groups is not None:
            widest = max(len(group) for group in groups)
            # Repeating a member does not change the largest.
            self._index = torch.tensor([[*group, *[group[0]] * (widest - len(group))] for group in groups])

    def __call__(self, probabilities: Tensor) -> Tensor:
        """(B, classes of the model) to (B, classes of the set)."""
        if self._index is None:
            return probabilities
        needed = int(self._index.max())
        if needed >= probabilities.shape[1]:
            raise InputError(f"a model with {probabilities.shape[1]} classes for a set that needs class {needed}")
        return probabilities[:, self._index.to(probabilities.device)].amax(-1)


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
