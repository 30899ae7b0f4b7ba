"""The other end of a pipe: what a worker process does, and the words it is spoken to with."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import threading
import traceback
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch

from blemish.execution.base import Later, Work
from blemish.execution.schedule import Event, Finished, Queued, Raised, Ready, Returned, Told
from blemish.types import InputError

__all__ = ["Hello", "OneUnit", "packed", "raised", "serve"]


def packed(job: Any) -> bytes:
    """A job as bytes; what cannot travel is refused with a reason."""
    try:
        # Not by what multiprocessing uses, because with it tensors would share memory with this process.
        return pickle.dumps(job, protocol=pickle.HIGHEST_PROTOCOL)
    except InputError:
        raise
    except Exception as error:  # pickling runs the code of what it is given
        raise InputError(f"the work cannot be sent to other processes ({type(error).__name__}: {error})") from error


def raised(error: Exception) -> Raised:
    """An error as it travels: as text, because not every error can be pickled."""
    bad_input = isinstance(error, InputError)
    return Raised(str(error) if bad_input else f"{type(error).__name__}: {error}", traceback.format_exc(), bad_input)


@dataclass(frozen=True)
class Hello:
    """A worker's first word."""


@dataclass(frozen=True)
class OneUnit:
    """A unit, as distinct from a job."""

    unit: Any
    number: int


def serve(connection: Connection, device: str) -> None:
    """A worker's life: it opens jobs, and does one unit after the other, until the pipe ends."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    place = torch.device(device)
    work: Work[Any, Any] | None = None
    speaker = _Speaker(connection)
    with contextlib.suppress(EOFError, OSError):
        speaker.say(Hello())
        while True:
            content = connection.recv_bytes()
            try:
                message = pickle.loads(content)
                if isinstance(message, OneUnit):
                    assert work is not None
                    result = work(message.unit, lambda what: speaker.say(Told(what)))
                    if isinstance(result, Later):
                        speaker.say_later(message.number, result)
                    else:
                        speaker.say(Returned(result))
                else:
                    work = None  # the model and images of the job before make room
                    job, threads = message
                    work = _opened(job, threads, place)
                    speaker.say(Ready())
            except Exception as error:
                speaker.say(raised(error))


class _Speaker:
    """A worker's voice: its own, and that of the thread in which results are finished while the next unit begins."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1)
        self._last: Future[None] | None = None

    def say(self, event: Event | Hello) -> None:
        content = pickle.dumps(event, protocol=pickle.HIGHEST_PROTOCOL)
        with self._lock:
            self._connection.send_bytes(content)

    def say_later(self, number: int, result: Later) -> None:
        if self._last is not None:
            self._last.result()  # no more than one is on its way
        self.say(Queued())
        self._last = self._thread.submit(self._finish, number, result)

    def _finish(self, number: int, result: Later) -> None:
        try:
            with contextlib.suppress(OSError):  # nobody listens any more
                try:
                    self.say(Finished(number, Returned(result.finish())))
                except Exception as error:
                    self.say(Finished(number, raised(error)))
        except (
            BaseException
        ):  # it ends the worker, as it would in the main thread, or its answer is waited for for ever
            traceback.print_exc()
            os._exit(1)


def _opened(job: bytes, threads: int, device: torch.device) -> Work[Any, Any]:
    torch.set_num_threads(threads)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    work: Work[Any, Any] = pickle.loads(job).open(device)
    return work


def _end_with_parent() -> None:
    """A killed parent cannot stop its workers, which may be busy for long."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
