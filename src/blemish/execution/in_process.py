"""Units one after the other in this process."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator, Hashable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import torch

from blemish.execution.base import (
    Done,
    Failed,
    Job,
    Later,
    Outcome,
    Progress,
    Reach,
    Tell,
    Work,
    settled,
    torch_threads,
)
from blemish.types import InputError

__all__ = ["InProcess"]

Unit = TypeVar("Unit")
Result = TypeVar("Result")


@dataclass(frozen=True)
class InProcess:
    """No other process: nothing has to be picklable, and the job uses the device that it has."""

    retries: int = 2

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def workers(self) -> int:
        """One unit at a time."""
        return 1

    @property
    def reach(self) -> Reach:
        """Everything is shared."""
        return "process"

    @property
    def device(self) -> torch.device | None:
        """That of the job."""
        return None

    def run(
        self,
        job: Job[Unit, Result],
        units: Iterable[Unit],
        *,
        progress: Progress | None = None,
        key: Callable[[Unit], Hashable] | None = None,  # noqa: ARG002  # there is one worker
        threads: int | None = None,
    ) -> Generator[Outcome[Unit, Result], None, None]:
        """The outcome of each unit, in their order."""
        with torch_threads(threads):
            work = job.open(None)
        with ThreadPoolExecutor(1) as thread:
            waiting: tuple[Unit, Future[Result]] | None = None
            for unit in units:
                with torch_threads(threads):
                    outcome = self._outcome(work, unit, progress)
                if waiting is not None:
                    yield self._waited_for(work, *waiting)
                    waiting = None
                if isinstance(outcome, Done) and isinstance(outcome.result, Later):
                    waiting = unit, thread.submit(outcome.result.finish)
                else:
                    yield outcome
            if waiting is not None:
                yield self._waited_for(work, *waiting)

    def _waited_for(self, work: Work[Unit, Result], unit: Unit, result: Future[Result]) -> Outcome[Unit, Result]:
        first = [result.result]

        def again(unit: Unit, tell: Tell) -> Result:
            if first:
                return first.pop()()
            done: Result = settled(work(unit, tell))
            return done

        return self._outcome(again, unit, None)

    def _outcome(self, work: Work[Unit, Result], unit: Unit, progress: Progress | None) -> Outcome[Unit, Result]:
        for attempt in range(1, self.retries + 2):
            try:
                return Done(unit, work(unit, lambda what: progress(unit, what) if progress is not None else None))
            except InputError as error:
                return Failed(unit, str(error), traceback.format_exc(), attempt, bad_input=True)
            except Exception as error:
                failed = Failed(unit, f"{type(error).__name__}: {error}", traceback.format_exc(), attempt)
        return failed
