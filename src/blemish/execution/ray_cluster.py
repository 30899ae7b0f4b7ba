"""Units on a Ray cluster: actors that open the job once, are given one unit at a time, and are replaced when they die.

Ray's object store holds the job once, and at most one unit and two results for each worker; never images.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import warnings
from collections.abc import Callable, Generator, Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch

from blemish.execution.base import Job, Outcome, Progress, Reach
from blemish.execution.ray_actor import Actor
from blemish.execution.schedule import Died, Event, Queued, Told, schedule
from blemish.execution.worker import packed
from blemish.types import InputError, optional_import

__all__ = ["LARGEST_JOB", "RayExecutor"]

Unit = TypeVar("Unit")
Result = TypeVar("Result")

LARGEST_JOB = 2**30
"""Bytes of a job that the object store has to take; models and images named by a text or path need next to nothing."""

# After so long without a worker the user is told what is waited for.
_PATIENCE_SECONDS = 60.0

_CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class RayExecutor:
    """``count`` actors on the cluster at ``address``; by default one per GPU, or without any per ``threads`` CPU cores.

    ``threads`` is the number of torch threads of each; by default as many as this process has, because it can change
    the last bit. A node with fewer cores takes one worker all the same.
    ``local`` starts a cluster on this machine, ``auto`` joins the one that this machine belongs to. Where the program
    is connected to a cluster already, that one is used.
    """

    address: str = "local"
    count: int | None = None
    gpu: bool | None = None
    threads: int | None = None
    retries: int = 2
    _kept: list[_Pool] = field(default_factory=list, init=False, repr=False, compare=False)

    def __enter__(self) -> RayExecutor:
        self._kept.append(self._kept[0] if self._kept else _Pool(self._cores, gpu=bool(self.gpu)))
        return self

    def __exit__(self, *_: object) -> None:
        pool = self._kept.pop()
        if not self._kept:
            pool.close()

    def __post_init__(self) -> None:
        """Connect, and refuse a cluster that has no room for a single worker."""
        if self.count is not None and self.count < 1:
            raise InputError(f"{self.count} jobs; expected at least 1")
        ray = optional_import("ray")
        if not ray.is_initialized():
            _check_listening(self.address)
            try:
                ray.init(address=self.address, log_to_driver=False, logging_level="ERROR", **self._settings())
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise InputError(f"no Ray cluster at {self.address} ({error})") from error
        if self.gpu is None:
            object.__setattr__(self, "gpu", any(node.get("GPU", 0) >= 1 for node in _nodes()))
        if self._room() < 1:
            what = "GPU" if self.gpu else "CPU core"
            raise InputError(f"the Ray cluster has no node with a {what}; expected room for at least one worker")

    def _settings(self) -> dict[str, Any]:
        return {"include_dashboard": False} if self.address == "local" else {}

    def _room(self) -> int:
        """How many workers the nodes take; a worker does not span nodes."""
        kind, need = ("GPU", 1) if self.gpu else ("CPU", self._cores)
        return sum(int(node.get(kind, 0) // need) for node in _nodes())

    @property
    def _cores(self) -> int:
        """Cores that a worker takes: those of its threads, as far as the smallest node has them; with a GPU, one."""
        smallest = min((int(node.get("CPU", 0)) for node in _nodes() if node.get("CPU", 0) >= 1), default=1)
        return 1 if self.gpu else min(self.threads or torch.get_num_threads(), smallest)

    @property
    def workers(self) -> int:
        """How many actors."""
        return self.count or self._room()

    @property
    def reach(self) -> Reach:
        """Nothing is shared but what is sent, and what paths mean on every machine."""
        return "cluster"

    @property
    def device(self) -> torch.device | None:
        """The kind of device of the workers; Ray shows each only its own GPU."""
        return torch.device("cuda" if self.gpu else "cpu")

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
        content = packed(job)
        if len(content) > LARGEST_JOB:
            raise InputError(
                f"work of {len(content) / 2**30:.1f} GiB to send to every machine; expected at most "
                f"{LARGEST_JOB / 2**30:.0f} GiB: name models and images by a text or a path, which machines open"
            )
        with self:
            pool = self._kept[0]
            pool.begin(content, threads or self.threads or torch.get_num_threads())
            try:
                yield from schedule(pool, units, count=self.workers, retries=self.retries, progress=progress, key=key)
            finally:
                pool.rest()


def _check_listening(address: str) -> None:
    """Refuse HOST:PORT where nobody answers; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "://" in address:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"no Ray cluster at {address} ({error})") from error


def _nodes() -> list[dict[str, float]]:
    return [node["Resources"] for node in optional_import("ray").nodes() if node["Alive"]]


class _Pool:
    def __init__(self, cores: int, *, gpu: bool) -> None:
        self._ray = optional_import("ray")
        self._device = "cuda:0" if gpu else "cpu"
        # Three threads: one works, one finishes the unit before, and one tells of it.
        options = {"num_cpus": cores, "num_gpus": 1 if gpu else 0, "max_concurrency": 3, "max_restarts": 0}
        self._kind = self._ray.remote(**options)(Actor)
        self._actors: dict[int, Any] = {}
        self._resting: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._told: dict[int, int] = {}
        self._work: dict[Any, int] = {}
        self._news: dict[Any, int] = {}
        self._started = 0
        self._cores = cores
        self._patience: float | None = None

    def begin(self, job: bytes, threads: int) -> None:
        """The job of the workers that are started from now on; the object store holds it once."""
        self._patience = _PATIENCE_SECONDS
        settings = {name: value for name, value in os.environ.items() if name.startswith("BLEMISH_")}
        self._job = (self._ray.put(job), self._device, threads, str(Path.cwd()), [*sys.path], settings)

    def start(self) -> int:
        worker, self._started = self._started, self._started + 1
        self._actors[worker] = self._resting.pop(0) if self._resting else self._kind.remote()
        self._numbers[worker] = 0
        self._work[self._actors[worker].open.remote(*self._job)] = worker
        return worker

    def give(self, worker: int, unit: Any, number: int) -> None:
        self._patience = None
        self._numbers[worker] = number
        self._told[worker] = 0
        self._work[self._actors[worker].do.remote(number, packed(unit))] = worker
        self._ask(worker)

    def _ask(self, worker: int) -> None:
        if worker not in self._news.values():
            self._news[self._actors[worker].news.remote(self._numbers[worker], self._told[worker])] = worker

    def events(self) -> list[tuple[int, Event]]:
        while True:
            ready, _ = self._ray.wait([*self._news, *self._work], num_returns=1, timeout=self._patience)
            if not ready:
                self._say_waiting()
            found = [event for ref in ready for event in self._heard(ref)]
            if found:
                return found

    def _say_waiting(self) -> None:
        """Once: a cluster whose places are all taken gives workers none, and says nothing."""
        self._patience = None
        needs = "a GPU" if self._device != "cpu" else f"{self._cores} cores"
        warnings.warn(
            f"no worker is ready after {_PATIENCE_SECONDS:g} s, but we go on waiting; each needs a free place with "
            f"{needs} on the Ray cluster, and time to open the model",
            RuntimeWarning,
            stacklevel=2,
        )

    def _heard(self, ref: Any) -> list[tuple[int, Event]]:
        at_work = ref in self._work
        worker = self._work.pop(ref) if at_work else self._news.pop(ref)
        try:
            number, first, messages, event = pickle.loads(self._ray.get(ref))
        except self._ray.exceptions.RayError as error:
            if not at_work:  # the reference of its work will tell, too
                return []
            self.end(worker)
            return [(worker, Died(f"a Ray worker died ({_first_line(error)})"))]
        found: list[tuple[int, Event]] = []
        if number == self._numbers.get(worker) and number > 0:
            # Answers overtake each other, so each repeats what the actor does not know to have arrived.
            found = [(worker, Told(message)) for message in messages[max(0, self._told[worker] - first) :]]
            self._told[worker] = max(self._told[worker], first + len(messages))
        if isinstance(event, Queued):
            self._work[self._actors[worker].finish.remote(number)] = worker
        if event is not None:
            return [*found, (worker, event)]
        if worker in self._work.values():
            self._ask(worker)
        return found

    def end(self, worker: int) -> None:
        actor = self._actors.pop(worker, None)
        for refs in (self._work, self._news):
            for ref in [ref for ref, owner in refs.items() if owner == worker]:
                del refs[ref]
        if actor is not None:
            self._ray.kill(actor, no_restart=True)

    def rest(self) -> None:
        """Workers that are free wait for another job; the others are ended."""
        for worker in list(self._actors):
            if worker in self._work.values():
                self.end(worker)
            else:
                self._resting.append(self._actors.pop(worker))
        self._news.clear()

    def close(self) -> None:
        for actor in self._resting:
            self._ray.kill(actor, no_restart=True)
        self._resting.clear()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__
