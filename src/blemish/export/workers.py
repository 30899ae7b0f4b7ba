"""Independent tasks on an executor, one torch thread each, so that results never differ."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import TypeVar

from blemish.core.errors import InputError
from blemish.evaluation.executors.base import Executor, Job
from blemish.evaluation.executors.failures import completed
from blemish.evaluation.executors.in_process import InProcess
from blemish.evaluation.executors.processes import Processes

Task = TypeVar("Task")
Result = TypeVar("Result")


def executor_for(jobs: int, executor: Executor | None = None) -> Executor:
    """The executor that was given, or one for so many processes."""
    if jobs < 1:
        raise InputError(f"{jobs} jobs; expected at least 1")
    return executor or (Processes(jobs) if jobs > 1 else InProcess())


def run_tasks(
    job: Job[Task, Result],
    tasks: Iterable[Task],
    *,
    executor: Executor,
    folder: Path,
    name: Callable[[Task], str] = str,
    threads: int | None = 1,
) -> Generator[Result, None, None]:
    """What comes of every task, as they finish. Close the generator to stop.

    Bad input, such as a full disk, ends everything. Tasks that fail otherwise are repeated; those that fail for good
    are listed in an error at the end, with their tracebacks in a file in ``folder``. Sums are split by thread: with
    more than one of them a value could fall on the other side of a grey level.
    """
    outcomes = executor.run(job, tasks, threads=threads)
    with contextlib.closing(outcomes):
        for _, result in completed(outcomes, folder, name, stop_at_bad_input=True):
            yield result
