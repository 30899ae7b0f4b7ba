"""A worker on a Ray cluster."""

from __future__ import annotations

import os
import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import torch

from blemish.execution.base import Later
from blemish.execution.schedule import Event, Finished, Queued, Ready, Returned
from blemish.execution.worker import raised

__all__ = ["Actor"]

# How long it waits for news before it answers that there are none.
_NEWS_SECONDS = 2.0


class Actor:
    """A worker on some machine. Everything travels as bytes, which Ray does not look into."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._messages: list[Any] = []
        self._first = 0
        self._number = 0
        self._later: dict[int, Later] = {}
        self._work: Any = None
        self._threads = 1

    def open(
        self, job: bytes, device: str, threads: int, folder: str, path: list[str], settings: dict[str, str]
    ) -> bytes:
        """Open the job where paths and modules mean what they mean to the coordinator, if the machine has them."""
        os.environ.update(settings)
        if Path(folder).is_dir():
            os.chdir(folder)
        sys.path += [entry for entry in path if entry not in sys.path]
        self._threads = threads
        torch.set_num_threads(threads)
        self._work = None  # the model and images of the job before make room
        self._later = {}
        try:
            self._work = pickle.loads(job).open(torch.device(device))
        except Exception as error:
            return as_bytes(0, 0, [], raised(error))
        return as_bytes(0, 0, [], Ready())

    def do(self, number: int, unit: bytes) -> bytes:
        """A unit's result, with what was told of it and may not have arrived yet."""
        torch.set_num_threads(self._threads)  # of this thread; Ray has several
        with self._changed:
            self._number, self._first, self._messages = number, 0, []
        try:
            event = self._begun(number, self._work(pickle.loads(unit), self._tell))
            pickle.dumps(event)  # what cannot travel is this unit's failure, not the worker's
        except Exception as error:
            event = raised(error)
        with self._changed:
            self._changed.notify_all()
            return as_bytes(number, self._first, self._messages, event)

    def _begun(self, number: int, result: Any) -> Event:
        if not isinstance(result, Later):
            return Returned(result)
        with self._changed:
            self._changed.wait_for(lambda: not self._later)  # no more than one is on its way
            self._later[number] = result
        return Queued()

    def finish(self, number: int) -> bytes:
        """The result of a unit that came later, while the next one is worked on."""
        try:
            answer = as_bytes(number, 0, [], Finished(number, Returned(self._later[number].finish())))
        except Exception as error:
            answer = as_bytes(number, 0, [], Finished(number, raised(error)))
        with self._changed:
            del self._later[number]
            self._changed.notify_all()
        return answer

    def _tell(self, message: Any) -> None:
        with self._changed:
            self._messages.append(message)
            self._changed.notify_all()

    def news(self, number: int, arrived: int) -> bytes:
        """What was told of a unit after the first so many words, which have arrived; waits a little for it."""
        with self._changed:
            if number == self._number and arrived > self._first:
                del self._messages[: arrived - self._first]
                self._first = arrived
            if number != self._number or not self._messages:
                self._changed.wait(_NEWS_SECONDS)
            return as_bytes(self._number, self._first, self._messages, None)


def as_bytes(number: int, first: int, messages: list[Any], event: Event | None) -> bytes:
    return pickle.dumps((number, first, messages, event), protocol=pickle.HIGHEST_PROTOCOL)
