"""Who does which unit next: workers that are started, given one unit at a time, replaced when they fail."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Iterable, Sized
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from blemish.execution.base import Done, Failed, Outcome, Progress
from blemish.types import InputError

__all__ = ["Died", "Event", "Pool", "Raised", "Ready", "Returned", "Told", "schedule"]

Unit = TypeVar("Unit")

Worker = int
"""Workers are numbered; a number is never given again."""


@dataclass(frozen=True)
class Ready:
    """The job is open."""


@dataclass(frozen=True)
class Told:
    """Something about the unit at work."""

    message: Any


@dataclass(frozen=True)
class Returned:
    """The unit at work is done."""

    result: Any


@dataclass(frozen=True)
class Raised:
    """The unit at work, or opening the job, has raised an error."""

    reason: str
    traceback: str
    bad_input: bool


@dataclass(frozen=True)
class Died:
    """The worker is gone."""

    reason: str


Event = Ready | Told | Returned | Raised | Died


class Pool(Protocol):
    """Workers of some kind, all with the same job."""

    def start(self) -> Worker:
        """Begin a new worker; it opens the job and says `Ready`."""
        ...

    def give(self, worker: Worker, unit: Any) -> None:
        """Send a unit; a worker that is gone will say so by an event."""
        ...

    def events(self) -> list[tuple[Worker, Event]]:
        """What has happened; waits for it, if need be."""
        ...

    def end(self, worker: Worker) -> None:
        """Stop a worker at once."""
        ...


class _Queue(Generic[Unit]):
    """Units that wait. With keys, a worker is given what it knows, then what nobody knows, then anything."""

    def __init__(self, units: Iterable[Unit], key: Callable[[Unit], Hashable] | None) -> None:
        self._key = key
        self._again: deque[Unit] = deque(units if key is not None else ())
        self._rest = iter(() if key is not None else units)
        self._owner: dict[Hashable, Worker] = {}

    def next(self, worker: Worker) -> Unit | None:
        if self.empty:
            return None
        place = 0 if self._key is None else self._place(self._key, worker)
        unit = self._again[place]
        del self._again[place]
        if self._key is not None:
            self._owner[self._key(unit)] = worker
        return unit

    def _place(self, key: Callable[[Unit], Hashable], worker: Worker) -> int:
        unknown = None
        for place, unit in enumerate(self._again):
            owner = self._owner.get(key(unit))
            if owner == worker:
                return place
            if owner is None and unknown is None:
                unknown = place
        return unknown or 0

    @property
    def empty(self) -> bool:
        """Whether nothing waits; units are drawn from their source only when they are needed."""
        if not self._again:
            self._again.extend(itertools.islice(self._rest, 1))
        return not self._again

    def again(self, unit: Unit) -> None:
        self._again.append(unit)

    def forget(self, worker: Worker) -> None:
        self._owner = {key: owner for key, owner in self._owner.items() if owner != worker}


@dataclass
class _Schedule:
    pool: Pool
    queue: _Queue[Any]
    count: int
    retries: int
    progress: Progress | None
    at_work: dict[Worker, Any] = field(default_factory=dict)
    opening: set[Worker] = field(default_factory=set)
    idle: set[Worker] = field(default_factory=set)
    attempts: Counter[int] = field(default_factory=Counter)
    unopened: int = 0
    why: str = ""

    def outcomes(self) -> Generator[Outcome[Any, Any], None, None]:
        while True:
            for worker in sorted(self.idle):
                self._give(worker)
            alive = len(self.at_work) + len(self.opening) + len(self.idle)
            while not self.queue.empty and alive < self.count and self.unopened <= self.retries:
                self.opening.add(self.pool.start())
                alive += 1
            if not self.at_work and self.queue.empty:
                return
            if not self.at_work and not self.opening:
                raise InputError(f"workers cannot start: {self.why}")
            for worker, event in self.pool.events():
                outcome = self._handle(worker, event)
                if outcome is not None:
                    yield outcome

    def _give(self, worker: Worker) -> None:
        unit = self.queue.next(worker)
        if unit is not None:
            self.idle.discard(worker)
            self.at_work[worker] = unit
            self.pool.give(worker, unit)

    def _handle(self, worker: Worker, event: Event) -> Outcome[Any, Any] | None:
        if worker in self.opening:
            self._opened(worker, event)
            return None
        if worker not in self.at_work:
            if isinstance(event, Died):  # between two units; nothing is lost
                self.idle.discard(worker)
                self.queue.forget(worker)
            return None
        unit = self.at_work[worker]
        if isinstance(event, Told):
            if self.progress is not None:
                self.progress(unit, event.message)
            return None
        if isinstance(event, Ready):
            return None
        del self.at_work[worker]
        if isinstance(event, Returned):
            self.attempts.pop(id(unit), None)
            self.idle.add(worker)
            return Done(unit, event.result)
        if isinstance(event, Raised) and event.bad_input:
            self.idle.add(worker)
        else:
            # After an error of any other kind the worker itself may be broken, as a GPU is for a process it has failed.
            self.pool.end(worker)
            self.queue.forget(worker)
        return self._failed(unit, event)

    def _failed(self, unit: Any, event: Raised | Died) -> Failed[Any] | None:
        self.attempts[id(unit)] += 1
        bad_input = isinstance(event, Raised) and event.bad_input
        if self.attempts[id(unit)] <= self.retries and not bad_input:
            self.queue.again(unit)
            return None
        trace = event.traceback if isinstance(event, Raised) else event.reason
        return Failed(unit, event.reason, trace, self.attempts.pop(id(unit)), bad_input)

    def _opened(self, worker: Worker, event: Event) -> None:
        self.opening.discard(worker)
        if isinstance(event, Ready):
            self.unopened = 0
            self.idle.add(worker)
            return
        self.pool.end(worker)
        if isinstance(event, Raised) and event.bad_input:
            raise InputError(event.reason)
        # Where others are at work, it goes on with them; where none can start, no unit will ever be done.
        self.unopened += 1
        if isinstance(event, (Raised, Died)):
            self.why = event.traceback if isinstance(event, Raised) else event.reason


def schedule(
    pool: Pool,
    units: Iterable[Unit],
    *,
    count: int,
    retries: int,
    progress: Progress | None = None,
    key: Callable[[Unit], Hashable] | None = None,
) -> Generator[Outcome[Unit, Any], None, None]:
    """The outcome of every unit. Each worker has one unit at a time, so that no more than ``count`` are on their way.

    A unit that fails is repeated ``retries`` times, by a new worker where the old one is gone.
    """
    if count < 1:
        raise InputError(f"{count} jobs; expected at least 1")
    if isinstance(units, Sized):
        count = min(count, len(units))
    return _Schedule(pool, _Queue(units, key), count, retries, progress).outcomes()
