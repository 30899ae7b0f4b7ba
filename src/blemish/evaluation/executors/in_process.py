"""Units one after the other in this process."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Generator, Hashable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from blemish.evaluation.executors.base import (
    Done,
    Executor,
    Job,
    Outcome,
    PendingResult,
    Progress,
    failed,
    torch_threads,
    wait_for,
)

_log = logging.getLogger(__name__)

Unit = TypeVar("Unit")
Result = TypeVar("Result")


@dataclass(frozen=True)
class InProcess(Executor):
    """No other process: nothing has to be picklable, and the job uses the device that it has."""

    reach = "process"
    workers = 1
    device = None

    retries: int = 2

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

        def begin(unit: Unit) -> Result:
            with torch_threads(threads):
                return work(unit, lambda told: None if progress is None else progress(unit, told))

        def finished(unit: Unit, result: Future[Result]) -> Outcome[Unit, Result]:
            return self._tried(unit, itertools.chain([result.result], itertools.repeat(lambda: wait_for(begin(unit)))))

        pending: tuple[Unit, Future[Result]] | None = None
        with ThreadPoolExecutor(1) as thread:
            for unit in units:
                outcome = self._tried(unit, itertools.repeat(lambda: begin(unit)))  # noqa: B023  # called at once
                if pending is not None:
                    yield finished(*pending)
                    pending = None
                if isinstance(outcome, Done) and isinstance(outcome.result, PendingResult):
                    pending = unit, thread.submit(outcome.result.finish)
                else:
                    yield outcome
            if pending is not None:
                yield finished(*pending)

    def _tried(self, unit: Unit, attempts: Iterable[Callable[[], Result]]) -> Outcome[Unit, Result]:
        for number, attempt in enumerate(itertools.islice(attempts, self.retries + 1), start=1):
            try:
                return Done(unit, attempt())
            except Exception as error:
                failure = failed(unit, error, number)
                if failure.bad_input:
                    break
                _log.info("%s failed, attempt %d of %d: %s", unit, number, self.retries + 1, failure.reason)
        return failure
