"""Pixels on their way to workers: themselves, a file of this machine that all map, or a way to make them again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.errors import InputError, storage_errors
from blemish.evaluation.executors.base import Reach


@contextlib.contextmanager
def shared_tensor(
    tensor: Tensor, reach: Reach, path: Path, again: Callable[[], Tensor] | None = None
) -> Iterator[Callable[[], Tensor]]:
    """How workers come by a uint8 tensor, without sending it; for workers of this machine by a file at ``path``.

    ``again`` makes it on another machine, and has to be picklable.
    """
    if reach == "process":
        yield lambda: tensor
    elif reach == "cluster":
        if again is None:
            raise InputError("images in memory cannot be opened on other machines; expected a path to them")
        yield again
    else:
        with mapped_file(tensor.cpu().contiguous().numpy(), path) as file:
            yield partial(_mapped, file, tuple(tensor.shape))


def _mapped(path: Path, shape: tuple[int, ...]) -> Tensor:
    # Copied where it is written to, which nobody does: torch warns of arrays that cannot be.
    return torch.from_numpy(np.memmap(path, dtype=np.uint8, mode="c", shape=shape))


@contextlib.contextmanager
def mapped_file(pixels: NDArray[np.uint8], path: Path) -> Iterator[Path]:
    """A file of pixels for a while, which processes map: they are in memory once."""
    try:
        with storage_errors(f"cannot write images to {path.parent}"):
            path.write_bytes(pixels.data)  # which says why it fails; NumPy's own way does not
        yield path
    finally:
        path.unlink(missing_ok=True)
