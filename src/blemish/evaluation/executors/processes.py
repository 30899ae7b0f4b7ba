"""Units in other processes of this machine, one per GPU or several on the CPU."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection

import torch

from blemish.core.errors import InputError, WorkerError
from blemish.evaluation.executors.pool import WorkerPool
from blemish.evaluation.executors.worker import packed, serve

_PATIENCE = 5.0

_context = multiprocessing.get_context("spawn")
# Processes are started and waited for by one thread at a time: else one would take the exit code from another.
_lock = threading.Lock()


@dataclass
class Processes(WorkerPool):
    """``count`` worker processes on ``devices``, which they take in turn; by default one for each device.

    Without ``devices`` they work on the CPU, as many as it has cores unless ``count`` says so.
    """

    reach = "machine"  # files are shared, and memory by mapping them

    count: int | None = None
    devices: tuple[str, ...] = ("cpu",)

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
    def device(self) -> torch.device | None:
        """The first of the devices."""
        return torch.device(self.devices[0])

    def start(self, slot: int) -> _Process:
        """A new process."""
        return _Process(self.devices[slot % len(self.devices)])


class _Process:
    """A worker process at the other end of a pipe: a killed one closes it, even in the middle of a message."""

    def __init__(self, device: str) -> None:
        self._connection, theirs = _context.Pipe()
        self._process = _context.Process(target=_live, args=(theirs, device), daemon=True, name="blemish-worker")
        with _lock, _without_ctrl_c():
            self._process.start()
        theirs.close()  # so that the pipe ends with the worker
        self._listens = False

    def open(self, job: bytes, threads: int) -> None:
        if not self._listens:
            self.receive()
            self._listens = True
        self.send(packed((job, threads)))

    def send(self, content: bytes) -> None:
        with contextlib.suppress(OSError):  # a worker that is gone is noticed when it is listened to
            self._connection.send_bytes(content)

    def receive(self) -> bytes:
        try:
            return self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            with _lock:
                self._process.join(_PATIENCE)
            raise WorkerError(_death(self._process.exitcode, self._listens)) from error

    def kill(self) -> None:
        # What it writes is complete or not there, so nothing is lost by haste.
        with _lock:
            self._process.kill()
            self._process.join()


def _live(connection: Connection, device: str) -> None:
    """A worker's life: one job after the other, until the pipe ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        connection.send_bytes(b"listening")
        while True:
            job, threads = pickle.loads(connection.recv_bytes())
            serve(job, threads, device, connection.recv_bytes, connection.send_bytes)


def _end_with_parent() -> None:
    """A killed parent cannot stop its workers, which may be busy for long."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _death(code: int | None, listened: bool) -> str:
    if code is not None and code < 0:
        hint = "; perhaps memory was short: try fewer jobs" if -code == signal.SIGKILL else ""
        return f"a worker process was ended by {signal.Signals(-code).name}{hint}"
    hint = "" if listened else '; a script that starts workers has to do so below: if __name__ == "__main__":'
    return f"a worker process ended by itself (exit code {code}){hint}"


@contextlib.contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Ctrl-C reaches every process of a terminal; what it means is for the coordinator to decide.

    Processes inherit what is blocked in the thread that starts them.
    """
    resource_tracker.ensure_running()  # which would otherwise be started now, and end the blocking
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
