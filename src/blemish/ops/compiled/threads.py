"""A batch shared out among threads: as many as torch uses, which is one in a DataLoader's worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor


def shares(count: int) -> Iterator[slice]:
    """``count`` images in as many parts of nearly equal size as there are threads to work on them."""
    parts = min(torch.get_num_threads(), count)
    bounds = [count * part // parts for part in range(parts + 1)]
    return map(slice, bounds, bounds[1:])


def shared_out(kernel: Callable[..., None], tensors: Sequence[Tensor], *settings: Any) -> None:
    """Call a kernel with a share of the images of each tensor (B, …) on each thread."""
    arrays = [tensor.numpy() for tensor in tensors]
    parts = [[array[rows] for array in arrays] for rows in shares(len(arrays[0]))]
    together([partial(kernel, *part, *settings) for part in parts])


def together(works: list[Callable[[], None]]) -> None:
    """Do all of these, on as many threads; kernels let go of the interpreter's lock."""
    threads = min(torch.get_num_threads(), len(works))
    # This thread takes its share. A process that was forked has none of its parent's threads, so it gets its own.
    others = [
        _pool(os.getpid(), torch.get_num_threads()).submit(_one_by_one, works[first::threads])
        for first in range(1, threads)
    ]
    try:
        _one_by_one(works[::threads] if threads > 1 else works)
    finally:
        for other in others:
            other.result()


def _one_by_one(works: list[Callable[[], None]]) -> None:
    for work in works:
        work()


@lru_cache(maxsize=1)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="blemish")
