"""A batch shared out among threads: as many as torch uses, which is one in a DataLoader's worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor


def shares(count: int, most: int | None = None) -> Iterator[slice]:
    """``count`` images in parts of nearly equal size: as many as there are threads, or more, of ``most`` images."""
    parts = min(torch.get_num_threads(), count)
    if most is not None:
        parts = max(parts, -(-count // most))
    if parts == 1:
        return iter([slice(0, count)])
    bounds = [count * part // parts for part in range(parts + 1)]
    return map(slice, bounds, bounds[1:])


def shared_out(kernel: Callable[..., None], tensors: Sequence[Tensor], *settings: Any) -> None:
    """Call a kernel with a share of the images of each tensor (B, …) on each thread."""
    arrays = [tensor.numpy() for tensor in tensors]
    parts = [[array[rows] for array in arrays] for rows in shares(len(arrays[0]))]
    together([partial(kernel, *part, *settings) for part in parts])


class Shared:
    """The kernels of a module, that are made by `shareable`, each called with some of the images on every thread.

    What is done before and after such a call is done once, where parts of a batch would each do it for themselves.
    """

    def __init__(self, kernels: Any) -> None:
        self._kernels = kernels

    def __getattr__(self, name: str) -> Callable[..., None]:
        return partial(_with_others, getattr(self._kernels, name))


def _with_others(kernel: Any, *arguments: Any) -> None:
    assert kernel.axes is not None, "a kernel whose images cannot be shared"
    together([partial(_on_some, kernel, arguments, rows) for rows in _pieces(len(arguments[0]))])


def _on_some(kernel: Any, arguments: Sequence[Any], rows: slice) -> None:
    kernel(*(_some(value, axis, rows) for value, axis in zip(arguments, kernel.axes, strict=True)))


def _some(value: Any, axis: int | None, rows: slice) -> Any:
    """What some images have of an argument, in the order of memory that kernels are compiled for."""
    if axis is None:
        return value
    return value[rows] if axis == 0 else np.ascontiguousarray(value[..., rows])


def _pieces(count: int) -> Iterator[slice]:
    """Ever smaller parts of a batch: a thread that wakes up late, or has the harder images, takes fewer."""
    threads, least = torch.get_num_threads(), max(1, count // 16)
    start = 0
    while start < count:
        stop = min(count, start + max(least, -(-(count - start) // (2 * threads))))
        yield slice(start, stop)
        start = stop


def together(works: Sequence[Callable[[], None]]) -> None:
    """Do all of these, on as many threads; kernels let go of the interpreter's lock."""
    threads = min(torch.get_num_threads(), len(works))
    rest = iter(works)  # whoever is free takes the next one
    # This thread helps. A process that was forked has none of its parent's threads, so it gets its own.
    others = [_pool(os.getpid(), torch.get_num_threads()).submit(_one_by_one, rest) for _ in range(1, threads)]
    try:
        _one_by_one(rest)
    finally:
        for other in others:
            other.result()


def _one_by_one(works: Iterator[Callable[[], None]]) -> None:
    for work in works:
        work()


@lru_cache(maxsize=1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="blemish")
