"""A tensor on its way to workers: itself, a file of this machine that all map, or a way to make it again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from blemish.execution.base import Reach
from blemish.types import InputError

__all__ = ["shared_tensor"]


@dataclass(frozen=True)
class _Same:
    tensor: Tensor

    def __call__(self) -> Tensor:
        return self.tensor


@dataclass(frozen=True)
class _File:
    path: Path
    shape: tuple[int, ...]

    def __call__(self) -> Tensor:
        # Copied where it is written to, which nobody does: torch warns of arrays that cannot be.
        return torch.from_numpy(np.memmap(self.path, dtype=np.uint8, mode="c", shape=self.shape))


@contextlib.contextmanager
def shared_tensor(
    tensor: Tensor, reach: Reach, path: Path, again: Callable[[], Tensor] | None = None
) -> Iterator[Callable[[], Tensor]]:
    """How workers come by a uint8 tensor, without sending it; for workers of this machine by a file at ``path``.

    ``again`` makes it on another machine, and has to be picklable.
    """
    if reach == "process":
        yield _Same(tensor)
    elif reach == "cluster":
        if again is None:
            raise InputError("images in memory cannot be opened on other machines; expected a path to them")
        yield again
    else:
        try:
            _write(tensor, path)
            yield _File(path, tuple(tensor.shape))
        finally:
            path.unlink(missing_ok=True)


def _write(tensor: Tensor, path: Path) -> None:
    try:
        path.write_bytes(tensor.cpu().contiguous().numpy().data)  # NumPy's own way does not say why it fails
    except OSError as error:
        raise InputError(f"cannot write images to {path.parent}: {error.strerror or error}") from error
