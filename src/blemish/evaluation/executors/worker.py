"""What a worker does, wherever it is, and what it says."""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch

from blemish.core.errors import BlemishError, InputError
from blemish.evaluation.executors.base import Done, Failed, PendingResult, Work, failed

OPENING = 0
"""The number of opening the job, which is reported as if it were a unit."""


@dataclass(frozen=True)
class Told:
    """Something about a unit."""

    unit: int
    content: Any


@dataclass(frozen=True)
class Queued:
    """A unit waits for its device only: another can begin, and its outcome follows."""

    unit: int


Message = Told | Queued | Done[int, Any] | Failed[int]
"""Units are numbered by whoever sends them."""


class Worker(Protocol):
    """A process somewhere that runs `serve`. Listening to one that is lost raises `WorkerError`."""

    def open(self, job: Any, threads: int) -> None:
        """Begin a job; the worker says what came of it."""
        ...

    def send(self, content: bytes) -> None:
        """Send a unit, or nothing to end the job."""
        ...

    def receive(self) -> bytes:
        """What the worker says next, which is waited for; nothing when the job has ended."""
        ...

    def kill(self) -> None:
        """End the worker at once."""
        ...


def packed(content: Any) -> bytes:
    """A job or a unit as bytes; what cannot travel is refused with a reason."""
    try:
        # Not by what multiprocessing uses, because with it tensors would share memory with this process.
        return pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
    except BlemishError:
        raise
    except Exception as error:  # pickling runs the code of what it is given
        raise InputError(f"the work cannot be sent to other processes ({type(error).__name__}: {error})") from error


def serve(job: bytes, threads: int, device: str, receive: Callable[[], bytes], send: Callable[[bytes], object]) -> None:
    """Open a job, then do the units that are received, each with its number; nothing ends it, and is the answer."""
    lock = threading.Lock()
    finisher = ThreadPoolExecutor(1)
    pending: list[Future[None]] = []

    def say(message: Message) -> None:
        content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        with lock:
            send(content)

    def answer(number: int, call: Callable[[], Any]) -> None:
        try:
            result = call()
            if isinstance(result, PendingResult):
                for last in pending:
                    last.result()  # no more than one is on its way
                say(Queued(number))
                pending[:] = [finisher.submit(answer, number, result.finish)]
            else:
                say(Done(number, result))
        except Exception as error:
            with contextlib.suppress(OSError):  # nobody listens any more
                say(failed(number, error))
        except BaseException:  # in whichever thread: nobody would hear of the unit if the worker lived on
            traceback.print_exc()
            os._exit(1)

    work: list[Work[Any, Any]] = []

    def open_job() -> None:
        torch.set_num_threads(threads)
        own = torch.device(device)
        if own.type == "cuda":
            torch.cuda.set_device(own)
        work.append(pickle.loads(job).open(own))

    def begin(number: int, unit: bytes) -> Any:
        return work[0](pickle.loads(unit), lambda content: say(Told(number, content)))

    answer(OPENING, open_job)
    while content := receive():
        number, unit = pickle.loads(content)
        answer(number, partial(begin, number, unit))
    finisher.shutdown()
    send(b"")
