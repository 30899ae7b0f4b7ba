"""Units in other processes of this machine, one per GPU or several on the CPU."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar, cast

import torch

from blemish.execution.base import Job, Outcome, Progress, Reach
from blemish.execution.schedule import Died, Event, Finished, Raised, Ready, Returned, schedule
from blemish.execution.worker import Hello, OneUnit, packed, serve
from blemish.types import InputError

__all__ = ["Processes"]

Unit = TypeVar("Unit")
Result = TypeVar("Result")

_PATIENCE = 5.0


@dataclass(frozen=True)
class Processes:
    """``count`` worker processes on ``devices``, which they take in turn; by default one for each device.

    Without ``devices`` they work on the CPU, as many as it has cores unless ``count`` says so. ``threads`` is the
    number of torch threads of each; by default as many as this process has, because it can change the last bit.
    """

    count: int | None = None
    devices: tuple[str, ...] = ("cpu",)
    threads: int | None = None
    retries: int = 2
    _kept: list[_Pool] = field(default_factory=list, init=False, repr=False, compare=False)

    def __enter__(self) -> Processes:
        self._kept.append(self._kept[0] if self._kept else _Pool(self.devices))
        return self

    def __exit__(self, *_: object) -> None:
        pool = self._kept.pop()
        if not self._kept:
            pool.close()

    def __post_init__(self) -> None:
        """Refuse what cannot be started."""
        if self.count is not None and self.count < 1:
            raise InputError(f"{self.count} jobs; expected at least 1")
        if not self.devices:
            raise InputError("no devices; expected at least one, such as cpu or cuda:0")

    @property
    def workers(self) -> int:
        """How many processes."""
        on_cpu = all(torch.device(name).type == "cpu" for name in self.devices)
        return self.count or ((os.cpu_count() or 1) if on_cpu else len(self.devices))

    @property
    def reach(self) -> Reach:
        """Files of this machine are shared, and memory by mapping them."""
        return "machine"

    @property
    def device(self) -> torch.device | None:
        """The first of the devices."""
        return torch.device(self.devices[0])

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
        each = threads or self.threads or torch.get_num_threads()
        content = packed(job)
        with self:
            pool = self._kept[0]
            pool.begin(content, each)
            try:
                yield from schedule(pool, units, count=self.workers, retries=self.retries, progress=progress, key=key)
            finally:
                pool.rest()


@dataclass
class _Process:
    """A worker process, the pipe to it, and the place of its device among all."""

    process: BaseProcess
    connection: Connection
    place: int
    greeted: bool = False
    ready: bool = False
    units: int = 0

    @property
    def free(self) -> bool:
        return self.ready and not self.units

    def heard(self, event: Event) -> None:
        self.ready = self.ready or isinstance(event, Ready)
        self.units -= isinstance(event, (Returned, Finished)) or (isinstance(event, Raised) and self.ready)

    def end(self) -> None:
        self.connection.close()
        self.process.kill()  # what it writes is complete or not there, so nothing is lost by haste
        self.process.join()
        self.process.close()


class _Pool:
    """Worker processes, each at the other end of a pipe: a killed one closes it, and takes nothing else with it."""

    def __init__(self, devices: tuple[str, ...]) -> None:
        self._devices = devices
        self._context = multiprocessing.get_context("spawn")
        self._alive: dict[int, _Process] = {}
        self._resting: list[_Process] = []
        self._started = 0

    def begin(self, job: bytes, threads: int) -> None:
        """The job of the workers that are started from now on."""
        self._job = packed((job, threads))

    def start(self) -> int:
        worker, self._started = self._started, self._started + 1
        if self._resting:
            self._alive[worker] = self._resting.pop(0)
            self._alive[worker].ready = False
            self._send(worker, self._job)
            return worker
        here, there = self._context.Pipe()
        taken = [process.place for process in self._alive.values()]
        place = min(range(len(self._devices)), key=taken.count)
        process = self._context.Process(
            target=serve, args=(there, self._devices[place]), daemon=True, name=f"blemish-{worker}"
        )
        with _ctrl_c_ignored():  # by the worker that starts now; it inherits it
            process.start()
        there.close()  # so that the pipe ends with the worker
        self._alive[worker] = _Process(process, here, place)
        return worker

    def give(self, worker: int, unit: Any, number: int) -> None:
        self._alive[worker].units += 1
        self._send(worker, packed(OneUnit(unit, number)))

    def _send(self, worker: int, content: bytes) -> None:
        with contextlib.suppress(OSError):  # a worker that is gone is noticed when it is listened to
            self._alive[worker].connection.send_bytes(content)

    def events(self) -> list[tuple[int, Event]]:
        while True:
            of = {process.connection: worker for worker, process in self._alive.items()}
            heard = [of[found] for found in wait(list(of)) if isinstance(found, Connection)]
            found = [(worker, event) for worker in heard if (event := self._event(worker)) is not None]
            if found:
                return found

    def _event(self, worker: int) -> Event | None:
        it = self._alive[worker]
        try:
            event = pickle.loads(it.connection.recv_bytes())
        except (EOFError, OSError, pickle.UnpicklingError):
            it.process.join(_PATIENCE)
            died = Died(_death(it.process.exitcode, it.greeted))
            self.end(worker)
            return died
        if isinstance(event, Hello):  # it listens now; before, a large job would have had to wait for it
            it.greeted = True
            self._send(worker, self._job)
            return None
        it.heard(event)
        return cast(Event, event)

    def end(self, worker: int) -> None:
        if worker in self._alive:
            self._alive.pop(worker).end()

    def rest(self) -> None:
        """Workers that are free wait for another job; the others are ended."""
        self._resting += [process for process in self._alive.values() if process.free]
        for process in self._alive.values():
            if not process.free:
                process.end()
        self._alive.clear()

    def close(self) -> None:
        for process in self._resting:
            process.end()
        self._resting.clear()


def _death(code: int | None, began: bool) -> str:
    if code is not None and code < 0:
        hint = "; perhaps memory was short: try fewer jobs" if -code == signal.SIGKILL else ""
        return f"a worker process was ended by {signal.Signals(-code).name}{hint}"
    hint = "" if began else '; a script that starts workers has to do so below: if __name__ == "__main__":'
    return f"a worker process ended by itself (exit code {code}){hint}"


@contextlib.contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal; what it means is for the coordinator to decide."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change signals, and only it is interrupted
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
