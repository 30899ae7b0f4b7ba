"""Workers that are started, given one unit at a time, and replaced when they are lost.

All decisions are made in the thread that asks for outcomes; beside it there is one thread for each worker, which only
listens.
"""

from __future__ import annotations

import itertools
import logging
import pickle
import queue
import threading
import warnings
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterable, Sized
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import torch

from blemish.core.errors import InputError, StorageError, WorkerError
from blemish.evaluation.executors.base import Done, Executor, Failed, Job, Outcome, Progress
from blemish.evaluation.executors.worker import OPENING, Message, Queued, Told, Worker, packed

Unit = TypeVar("Unit")
Result = TypeVar("Result")

_log = logging.getLogger(__name__)

# After so long without a worker the user is told what is waited for.
_PATIENCE_SECONDS = 60.0


@dataclass(kw_only=True)
class WorkerPool(Executor):
    """What executors with workers share.

    ``threads`` is the number of torch threads of each worker; by default as many as this process has, because it can
    change the last bit. A unit that fails is repeated ``retries`` times, by a new worker.
    """

    threads: int | None = None
    retries: int = 2
    _blocks: int = field(default=0, init=False, repr=False, compare=False)
    _resting: dict[int, Worker] = field(default_factory=dict, init=False, repr=False, compare=False)

    @abstractmethod
    def start(self, slot: int) -> Worker:
        """A new worker; slots are numbered from 0, and have one worker at a time."""

    def prepared(self, job: bytes) -> Any:
        """A job as `Worker.open` takes it."""
        return job

    @property
    def needs(self) -> str | None:
        """What a worker may have to wait for before it can start; None where that is nothing."""
        return None

    def __enter__(self) -> Self:
        self._blocks += 1
        return self

    def __exit__(self, *_: object) -> None:
        self._blocks -= 1
        while not self._blocks and self._resting:
            self._resting.popitem()[1].kill()

    def run(
        self,
        job: Job[Unit, Result],
        units: Iterable[Unit],
        *,
        progress: Progress | None = None,
        key: Callable[[Unit], Hashable] | None = None,
        threads: int | None = None,
    ) -> Generator[Outcome[Unit, Result], None, None]:
        """The outcome of each unit, as they are finished."""
        content = self.prepared(packed(job))
        with self:
            each = threads or self.threads or torch.get_num_threads()
            yield from _Run(self, content, each, _Waiting(units, key), progress).outcomes()


@dataclass(eq=False)
class _Ticket:
    """A unit on its way. One whose worker was lost is ``alone`` with the next, whose loss is then its doing."""

    unit: Any
    attempts: int = 0
    alone: bool = False


_JOB = _Ticket("the job, which is opened as if it were a unit")


class _Waiting:
    """Units that wait; drawn from their source when they are needed, or all at once where there are keys."""

    def __init__(self, units: Iterable[Any], key: Callable[[Any], Hashable] | None) -> None:
        self.count = len(units) if isinstance(units, Sized) else None
        self._key, self._owner = key, dict[Hashable, int]()
        self._source = iter(units)
        self._tickets = deque(_Ticket(unit) for unit in (self._source if key is not None else ()))

    def __bool__(self) -> bool:
        if not self._tickets:
            self._tickets.extend(_Ticket(unit) for unit in itertools.islice(self._source, 1))
        return bool(self._tickets)

    def again(self, tickets: Iterable[_Ticket]) -> None:
        for ticket in tickets:
            ticket.alone = True
            self._tickets.append(ticket)

    def take(self, slot: int, *, shared: bool) -> _Ticket | None:
        """The next one for a worker, which has others where it is ``shared``."""
        if not self:
            return None
        index = self._index(slot)
        ticket = self._tickets[index]
        if shared and ticket.alone:
            return None
        del self._tickets[index]
        if self._key is not None:
            self._owner[self._key(ticket.unit)] = slot
        return ticket

    def _index(self, slot: int) -> int:
        """With keys, a worker is given what it knows, then what nobody knows, then anything."""
        if self._key is None:
            return 0
        owners = [self._owner.get(self._key(ticket.unit)) for ticket in self._tickets]
        return next((owners.index(owner) for owner in (slot, None) if owner in owners), 0)


@dataclass(eq=False)
class _Post:
    """A worker with the units that it holds, by their numbers: one is at work, another may wait for its GPU."""

    worker: Worker
    slot: int
    held: dict[int, _Ticket] = field(default_factory=lambda: {OPENING: _JOB})
    at_work: int | None = OPENING


class _Run:
    """One run of a job: the workers of it, and what they say."""

    def __init__(self, pool: WorkerPool, job: Any, threads: int, waiting: _Waiting, progress: Progress | None) -> None:
        self._pool, self._job, self._threads, self._waiting, self._progress = pool, job, threads, waiting, progress
        self._posts: dict[int, _Post] = {}
        self._listeners: list[threading.Thread] = []
        self._messages: queue.SimpleQueue[tuple[_Post, bytes | Exception]] = queue.SimpleQueue()
        self._numbers = itertools.count(OPENING + 1)
        self._patience = None if pool.needs is None else _PATIENCE_SECONDS
        self._unopened, self._why = 0, ""

    def outcomes(self) -> Generator[Outcome[Any, Any], None, None]:
        most = self._pool.workers
        slots = range(most if self._waiting.count is None else min(most, self._waiting.count))
        try:
            while True:
                for post in self._posts.values():
                    self._give(post)
                for slot in slots:
                    if slot not in self._posts and self._waiting and self._unopened <= self._pool.retries:
                        self._start(slot)
                if not any(post.held for post in self._posts.values()):
                    break
                yield from self._handle(*self._next_message())
            if self._waiting:
                raise WorkerError(f"workers cannot start: {self._why}")
        finally:
            self._end()

    def _start(self, slot: int) -> None:
        resting = self._pool._resting
        if slot not in resting:
            _log.info("worker %d of %d starts with %d threads", slot + 1, self._pool.workers, self._threads)
        self._posts[slot] = _Post(resting.pop(slot) if slot in resting else self._pool.start(slot), slot)
        self._listeners.append(threading.Thread(target=self._listen, args=(self._posts[slot],), daemon=True))
        self._listeners[-1].start()

    def _listen(self, post: _Post) -> None:
        try:
            post.worker.open(self._job, self._threads)
            while content := post.worker.receive():
                self._messages.put((post, content))
        except Exception as error:  # whatever it is, somebody waits for it
            self._messages.put((post, error))

    def _give(self, post: _Post) -> None:
        ticket = self._waiting.take(post.slot, shared=bool(post.held)) if post.at_work is None else None
        if ticket is not None:
            post.at_work = next(self._numbers)
            post.held[post.at_work] = ticket
            post.worker.send(packed((post.at_work, packed(ticket.unit))))

    def _next_message(self) -> tuple[_Post, Message]:
        try:
            post, received = self._messages.get(timeout=self._patience)
        except queue.Empty:
            warnings.warn(
                f"no worker is ready after {self._patience:g} s, but we go on waiting; each needs {self._pool.needs}, "
                "and time to open the model",
                RuntimeWarning,
                stacklevel=2,
            )
            post, received = self._messages.get()
        self._patience = None
        if isinstance(received, bytes):
            return post, pickle.loads(received)
        if isinstance(received, WorkerError):
            return post, Failed(OPENING, str(received), str(received), 1, lost=True)
        raise received

    def _handle(self, post: _Post, message: Message) -> list[Outcome[Any, Any]]:
        if self._posts.get(post.slot) is not post:  # it was ended, and may have said something before
            return []
        if isinstance(message, Told):
            if self._progress is not None and message.unit in post.held:
                self._progress(post.held[message.unit].unit, message.content)
            return []
        if isinstance(message, Queued):
            if not post.held[message.unit].alone:
                post.at_work = None
            return []
        if isinstance(message, Failed) and not message.bad_input:
            _log.info("worker %d is %s: %s", post.slot + 1, "lost" if message.lost else "ended", message.reason)
            # The worker itself may be broken, as a GPU is for a process that it has failed; and since a GPU fails late,
            # any unit that is with it may have done it.
            post.worker.kill()
            del self._posts[post.slot]
            tickets = [*post.held.values()]
        else:
            tickets = [post.held.pop(message.unit)]
            post.at_work = None if post.at_work == message.unit else post.at_work
        if _JOB in tickets:
            self._opened(message)
            return []
        return self._ended(tickets, message) if tickets else []

    def _opened(self, message: Done[Any, Any] | Failed[Any]) -> None:
        if isinstance(message, Done):
            self._unopened = 0
            return
        if message.bad_input:
            raise (StorageError if message.storage else InputError)(message.reason)
        # Where others are at work, it goes on with them; where none can start, no unit will ever be done.
        self._unopened += 1
        self._why = message.traceback

    def _ended(self, tickets: list[_Ticket], message: Done[Any, Any] | Failed[Any]) -> list[Outcome[Any, Any]]:
        ticket = tickets[0]
        if isinstance(message, Done):
            return [Done(ticket.unit, message.result)]
        if len(tickets) == 1:
            ticket.attempts += 1
            if message.bad_input or ticket.attempts > self._pool.retries:
                return [replace(message, unit=ticket.unit, attempts=ticket.attempts)]
        for ticket in tickets:
            _log.info("%s is tried again", ticket.unit)
        self._waiting.again(tickets)
        return []

    def _end(self) -> None:
        """Workers that are free wait for another job; the others are ended."""
        resting = self._pool._resting
        for post in self._posts.values():
            if not post.held and resting.setdefault(post.slot, post.worker) is post.worker:
                post.worker.send(b"")
            else:
                post.worker.kill()
        for listener in self._listeners:
            listener.join()
