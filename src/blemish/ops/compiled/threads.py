"""A batch shared out among threads: as many as torch uses, which is one in a DataLoader's worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from queue import SimpleQueue
from threading import Lock, Thread
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
    pieces = _pieces(len(arguments[0]), torch.get_num_threads())
    together([partial(_on_some, kernel, arguments, rows) for rows in pieces])


def _on_some(kernel: Any, arguments: Sequence[Any], rows: slice) -> None:
    kernel(*(_some(value, axis, rows) for value, axis in zip(arguments, kernel.axes, strict=True)))


def _some(value: Any, axis: int | None, rows: slice) -> Any:
    """What some images have of an argument, in the order of memory that kernels are compiled for."""
    if axis is None:
        return value
    return value[rows] if axis == 0 else np.ascontiguousarray(value[..., rows])


@lru_cache(maxsize=64)
def _pieces(count: int, threads: int) -> tuple[slice, ...]:
    """Ever smaller parts of a batch: a thread that wakes up late, or has the harder images, takes fewer."""
    pieces, start, least = [], 0, max(1, count // 16)
    while start < count:
        stop = min(count, start + max(least, -(-(count - start) // (2 * threads))))
        pieces.append(slice(start, stop))
        start = stop
    return tuple(pieces)


def together(works: Sequence[Callable[[], None]]) -> None:
    """Do all of these, on as many threads; kernels let go of the interpreter's lock."""
    threads = min(torch.get_num_threads(), len(works))
    rest = iter(works)  # whoever is free takes the next one
    if threads == 1:
        _one_by_one(rest)
        return
    # This thread helps. A process that was forked has none of its parent's threads, so it gets its own.
    calls = _helpers(os.getpid()).call(rest, threads - 1)
    try:
        _one_by_one(rest)
    finally:
        errors = [error for error in [call.end() for call in calls] if error is not None]
    if errors:
        raise errors[0]


def _one_by_one(works: Iterator[Callable[[], None]]) -> None:
    for work in works:
        work()


class _Call:
    """Works that a thread is asked to help with, and how that ended."""

    __slots__ = ("_begun", "_ended", "_works")

    def __init__(self, works: Iterator[Callable[[], None]]) -> None:
        self._works: Iterator[Callable[[], None]] | None = works
        self._begun, self._ended = Lock(), SimpleQueue[BaseException | None]()

    def help(self) -> None:
        """Take works until none is left, unless the call was ended before."""
        works, self._works = self._works, None  # a thread that waits for its next call keeps no images
        if works is None or not self._begun.acquire(blocking=False):
            return
        try:
            _one_by_one(works)
        except BaseException as error:  # whoever called raises it
            self._ended.put(error)
        else:
            self._ended.put(None)

    def end(self) -> BaseException | None:
        """Wait for a thread that helps, not for one that has not begun to, and give its error."""
        return None if self._begun.acquire(blocking=False) else self._ended.get()


class _Helpers:
    """Threads that wait for calls. `ThreadPoolExecutor` takes five times as long to wake one."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._starting, self._count = Lock(), 0

    def call(self, works: Iterator[Callable[[], None]], count: int) -> list[_Call]:
        """Ask so many threads to help."""
        if self._count < count:
            with self._starting:
                while self._count < count:
                    Thread(target=self._wait, name=f"blemish_{self._count}", daemon=True).start()
                    self._count += 1
        calls = [_Call(works) for _ in range(count)]
        for call in calls:
            self._calls.put(call)
        return calls

    def _wait(self) -> None:
        while True:
            self._calls.get().help()


@lru_cache(maxsize=1)
def _helpers(process: int) -> _Helpers:
    return _Helpers()
