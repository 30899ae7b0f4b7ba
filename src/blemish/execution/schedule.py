"""Who does which unit next: workers that are started, given one unit at a time, replaced when they fail."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Iterable, Sized
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from blemish.execution.base import Done, Failed, Outcome, Progress
from blemish.types import InputError

__all__ = ["Died", "Event", "Finished", "Pool", "Queued", "Raised", "Ready", "Returned", "Told", "schedule"]

Unit = TypeVar("Unit")

Worker = int
"""Workers are numbered; a number is never given again."""

_numbers = itertools.count(1)
"""Of units that are given; never the same twice in a process, because workers are kept from one run to the next."""


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
class Queued:
    """All of the unit at work is on its way on a device; the worker can begin with another, and `Finished` follows."""


@dataclass(frozen=True)
class Finished:
    """What came of a unit that was `Queued`, which the number names."""

    number: int
    event: Returned | Raised


@dataclass(frozen=True)
class Died:
    """The worker is gone."""

    reason: str


Event = Ready | Told | Returned | Raised | Queued | Finished | Died


class Pool(Protocol):
    """Workers of some kind, all with the same job."""

    def start(self) -> Worker:
        """Begin a new worker; it opens the job and says `Ready`."""
        ...

    def give(self, worker: Worker, unit: Any, number: int) -> None:
        """Send a unit with a number of its own; a worker that is gone will say so by an event."""
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


@dataclass(frozen=True)
class _Given:
    worker: Worker
    number: int
    unit: Any


@dataclass
class _Schedule:
    pool: Pool
    queue: _Queue[Any]
    count: int
    retries: int
    progress: Progress | None
    at_work: dict[Worker, _Given] = field(default_factory=dict)
    queued: dict[int, _Given] = field(default_factory=dict)
    opening: set[Worker] = field(default_factory=set)
    idle: set[Worker] = field(default_factory=set)
    attempts: Counter[int] = field(default_factory=Counter)
    # Units whose worker has failed: they have one to themselves from then on, so that the next failure is theirs.
    alone: set[int] = field(default_factory=set)
    unopened: int = 0
    why: str = ""

    def outcomes(self) -> Generator[Outcome[Any, Any], None, None]:
        while True:
            for worker in sorted(self.idle):
                self._give(worker)
            while not self.queue.empty and self._alive() < self.count and self.unopened <= self.retries:
                self.opening.add(self.pool.start())
            busy = bool(self.at_work or self.queued)
            if not busy and self.queue.empty:
                return
            if not busy and not self.opening:
                raise InputError(f"workers cannot start: {self.why}")
            for worker, event in self.pool.events():
                yield from self._handle(worker, event)

    def _alive(self) -> int:
        return len({*self.at_work, *self.opening, *self.idle, *(it.worker for it in self.queued.values())})

    def _queued_at(self, worker: Worker) -> list[_Given]:
        return [it for it in self.queued.values() if it.worker == worker]

    def _give(self, worker: Worker) -> None:
        unit = self.queue.next(worker)
        if unit is None:
            return
        if id(unit) in self.alone and self._queued_at(worker):
            self.queue.again(unit)
            return
        self.idle.discard(worker)
        self.at_work[worker] = _Given(worker, next(_numbers), unit)
        self.pool.give(worker, unit, self.at_work[worker].number)

    def _handle(self, worker: Worker, event: Event) -> list[Outcome[Any, Any]]:
        if worker in self.opening:
            self._opened(worker, event)
            return []
        if isinstance(event, Died):
            return self._lost(worker, event)
        if isinstance(event, Finished):
            it = self.queued.pop(event.number, None)
            return [] if it is None else self._ended(it, event.event)
        at_work = self.at_work.get(worker)
        if at_work is None or isinstance(event, Ready):
            return []
        if isinstance(event, Told):
            if self.progress is not None:
                self.progress(at_work.unit, event.message)
            return []
        del self.at_work[worker]
        if not isinstance(event, Queued):
            return self._ended(at_work, event)
        self.queued[at_work.number] = at_work
        if len(self._queued_at(worker)) == 1 and id(at_work.unit) not in self.alone:
            self.idle.add(worker)
        return []

    def _ended(self, it: _Given, event: Returned | Raised) -> list[Outcome[Any, Any]]:
        if isinstance(event, Returned) or event.bad_input:
            if it.worker not in self.at_work:
                self.idle.add(it.worker)
            return self._outcome(it.unit, event)
        # After an error of any other kind the worker itself may be broken, as a GPU is for a process it has failed.
        self.pool.end(it.worker)
        others = self._forgotten(it.worker)
        if not others:
            return self._outcome(it.unit, event)
        for other in [*others, it]:  # a GPU fails late: any of them may have done it
            self._again(other.unit)
        return []

    def _lost(self, worker: Worker, event: Died) -> list[Outcome[Any, Any]]:
        units = [it.unit for it in self._forgotten(worker)]
        if len(units) == 1:
            return self._outcome(units[0], event)
        for unit in units:  # any of them may have done it
            self._again(unit)
        return []

    def _forgotten(self, worker: Worker) -> list[_Given]:
        """What a worker had that is no more."""
        units = self._queued_at(worker)
        for it in units:
            del self.queued[it.number]
        if worker in self.at_work:
            units.append(self.at_work.pop(worker))
        self.idle.discard(worker)
        self.queue.forget(worker)
        return units

    def _again(self, unit: Any) -> None:
        self.alone.add(id(unit))
        self.queue.again(unit)

    def _outcome(self, unit: Any, event: Returned | Raised | Died) -> list[Outcome[Any, Any]]:
        if not isinstance(event, Returned):
            self.attempts[id(unit)] += 1
            bad_input = isinstance(event, Raised) and event.bad_input
            if self.attempts[id(unit)] <= self.retries and not bad_input:
                self._again(unit)
                return []
        attempts = self.attempts.pop(id(unit), 0)
        self.alone.discard(id(unit))
        if isinstance(event, Returned):
            return [Done(unit, event.result)]
        trace = event.traceback if isinstance(event, Raised) else event.reason
        return [Failed(unit, event.reason, trace, attempts, bad_input)]

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
    """The outcome of every unit. A worker has one unit at a time, and at most one more whose result is on its way.

    A unit that fails is repeated ``retries`` times, by a new worker where the old one is gone.
    """
    if count < 1:
        raise InputError(f"{count} jobs; expected at least 1")
    if isinstance(units, Sized):
        count = min(count, len(units))
    return _Schedule(pool, _Queue(units, key), count, retries, progress).outcomes()
