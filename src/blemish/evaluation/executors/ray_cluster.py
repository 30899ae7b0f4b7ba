"""Units on a Ray cluster: actors that open the job once, are given one unit at a time, and are replaced when they die.

Ray's object store holds the job once, and at most one unit and two results for each worker; never images.
"""

from __future__ import annotations

import logging
import os
import queue
import socket
import sys
import threading
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from blemish.core.errors import InputError, WorkerError, first_line, last_line, refused
from blemish.core.optional import optional_import
from blemish.evaluation.executors.pool import WorkerPool
from blemish.evaluation.executors.worker import serve

_log = logging.getLogger(__name__)

LARGEST_JOB = 2**30
"""Bytes of a job that the object store has to take; models and images named by a text or path need next to nothing."""

_CONNECT_SECONDS = 10.0


@dataclass
class RayExecutor(WorkerPool):
    """``count`` actors on the cluster at ``address``; by default one per GPU, or without any per ``threads`` CPU cores.

    A node with fewer cores than ``threads`` takes one worker all the same. ``local`` starts a cluster on this machine,
    ``auto`` joins the one that this machine belongs to. Where the program is connected to a cluster already, that one
    is used.
    """

    reach = "cluster"  # nothing is shared but what is sent, and what paths mean on every machine

    address: str = "local"
    count: int | None = None
    gpu: bool | None = None

    def __post_init__(self) -> None:
        """Connect, and refuse a cluster that has no room for a single worker."""
        if self.count is not None and self.count < 1:
            raise InputError(f"{self.count} jobs; expected at least 1")
        ray = optional_import("ray")
        if not ray.is_initialized():
            _check_listening(self.address)
            settings = {"include_dashboard": False} if self.address == "local" else {}
            with refused(f"no Ray cluster at {self.address}", ConnectionError, RuntimeError, ValueError):
                ray.init(address=self.address, log_to_driver=False, logging_level="ERROR", **settings)
        _log.info("connected to the Ray cluster at %s with %d nodes", self.address, len(_nodes()))
        if self.gpu is None:
            self.gpu = any(node.get("GPU", 0) >= 1 for node in _nodes())
        if self._room() < 1:
            part = "GPU" if self.gpu else "CPU core"
            raise InputError(f"the Ray cluster has no node with a {part}; expected room for at least one worker")

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
    def device(self) -> torch.device | None:
        """The kind of device of the workers; Ray shows each only its own GPU."""
        return torch.device("cuda" if self.gpu else "cpu")

    @property
    def needs(self) -> str:
        """What a worker waits for where the cluster is busy: Ray itself says nothing."""
        return f"a free place with {'a GPU' if self.gpu else f'{self._cores} cores'} on the Ray cluster"

    def prepared(self, job: bytes) -> Any:
        """A reference to the job, which the object store holds once."""
        if len(job) > LARGEST_JOB:
            raise InputError(
                f"work of {len(job) / 2**30:.1f} GiB to send to every machine; expected at most "
                f"{LARGEST_JOB / 2**30:.0f} GiB: name models and images by a text or a path, which machines open"
            )
        return optional_import("ray").put(job)

    def start(self, slot: int) -> _RayWorker:  # noqa: ARG002  # Ray chooses the machine and its GPU
        """A new actor."""
        return _RayWorker(self._cores, gpu=bool(self.gpu))


def _check_listening(address: str) -> None:
    """Refuse HOST:PORT where nobody answers; Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or "://" in address:
        return
    with refused(f"no Ray cluster at {address}", OSError, OverflowError):
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()


def _nodes() -> list[dict[str, float]]:
    return [node["Resources"] for node in optional_import("ray").nodes() if node["Alive"]]


class _RayWorker:
    """An actor on some machine. What it says comes as a stream of bytes, which Ray does not look into."""

    def __init__(self, cores: int, *, gpu: bool) -> None:
        self._ray = optional_import("ray")
        self._device = "cuda:0" if gpu else "cpu"
        # Two calls at a time: one in which it speaks, and one in which it is spoken to.
        options = {"num_cpus": cores, "num_gpus": int(gpu), "max_concurrency": 2, "max_restarts": 0}
        self._actor = self._ray.remote(**options)(_Actor).remote()
        self._stream: Iterator[Any] = iter(())

    def open(self, job: Any, threads: int) -> None:
        settings = {name: value for name, value in os.environ.items() if name.startswith("BLEMISH_")}
        speak = self._actor.speak.options(num_returns="streaming")
        self._stream = speak.remote(job, threads, self._device, str(Path.cwd()), [*sys.path], settings)

    def send(self, content: bytes) -> None:
        self._actor.hear.remote(content)

    def receive(self) -> bytes:
        try:
            content: bytes = self._ray.get(next(self._stream))
        except self._ray.exceptions.RayError as error:
            raised = isinstance(error, self._ray.exceptions.RayTaskError)  # whose first line tells only where
            raise WorkerError(f"a Ray worker died ({(last_line if raised else first_line)(error)})") from error
        return content

    def kill(self) -> None:
        self._ray.kill(self._actor, no_restart=True)


class _Actor:
    """A worker on a cluster, which hears what is sent, and speaks in a call that lasts as long as its job."""

    def __init__(self) -> None:
        self._heard: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def hear(self, content: bytes) -> None:
        self._heard.put(content)

    def speak(
        self, job: bytes, threads: int, device: str, folder: str, path: list[str], settings: dict[str, str]
    ) -> Generator[bytes, None, None]:
        """Work where paths and modules mean what they mean to the coordinator, if the machine has them."""
        os.environ.update(settings)
        if Path(folder).is_dir():
            os.chdir(folder)
        sys.path += [entry for entry in path if entry not in sys.path]
        said: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=serve, args=(job, threads, device, self._heard.get, said.put), daemon=True).start()
        while True:
            content = said.get()
            yield content
            if not content:
                return
