"""Running independent tasks in this process or in several, one torch thread each, so that results never differ."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from typing import Any, TypeVar

import torch

from blemish.types import InputError

__all__ = ["Stopped", "check_jobs", "run_tasks"]

Task = TypeVar("Task")
Result = TypeVar("Result")
Stopped = Callable[[], bool]
"""Asked by a worker between two files: has the user stopped the run?"""

# Enough that no worker waits for the parent, few enough that the parent reads only what is needed next.
_TASKS_AHEAD = 3

_work: Callable[[Any, Stopped], Any]
_stop: Event


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that cannot be."""
    if jobs < 1:
        raise InputError(f"{jobs} jobs; expected at least 1")


def run_tasks(
    work: Callable[[Task, Stopped], Result], tasks: Iterable[Task], *, jobs: int
) -> Generator[Result, None, None]:
    """``work(task, stopped)`` of every task, as they finish. Close the generator to stop: begun files are finished.

    With more than one job, ``work`` and its tasks and results travel between processes and must be picklable.
    """
    return _in_processes(work, tasks, jobs) if jobs > 1 else _in_process(work, tasks)


def _in_process(work: Callable[[Task, Stopped], Result], tasks: Iterable[Task]) -> Generator[Result, None, None]:
    with _one_thread():
        for task in tasks:
            yield work(task, lambda: False)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Sums are split by thread: with more of them a value could fall on the other side of a grey level."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _in_processes(
    work: Callable[[Task, Stopped], Result], tasks: Iterable[Task], jobs: int
) -> Generator[Result, None, None]:
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare, initargs=(work, stop))
    queue = iter(tasks)
    try:
        with _ctrl_c_ignored():  # by the workers that start now; they inherit it
            pending = {pool.submit(_do, task) for task in itertools.islice(queue, _TASKS_AHEAD * jobs)}
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            pending |= {pool.submit(_do, task) for task in itertools.islice(queue, len(done))}
            for future in done:
                yield future.result()
    except BrokenProcessPool as error:
        raise InputError("a worker process died, perhaps for lack of memory; run again with fewer jobs") from error
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal; what it means is for the parent to decide."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change signals, and only it is interrupted
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _prepare(work: Callable[[Any, Stopped], Any], stop: Event) -> None:
    global _work, _stop
    _work, _stop = work, stop
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent cannot stop its workers, and they would wait for its tasks for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(task: Any) -> Any:
    return _work(task, _stop.is_set)
