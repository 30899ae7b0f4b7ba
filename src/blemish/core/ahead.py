"""Work of several threads, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def ahead(work: Callable[[int], Result], count: int, workers: int) -> Generator[Result]:
    """The results for 0, 1, …, made by several threads, a few ahead of the one that is asked for."""
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for row in range(count):
                waiting.append(pool.submit(work, row))
                if len(waiting) > 4 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
