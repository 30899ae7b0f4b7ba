"""Work that is cut into units: what a job is, what an executor does with it, and what comes back."""

from __future__ import annotations

import contextlib
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeVar

import torch

from blemish.core.errors import InputError, StorageError

Unit = TypeVar("Unit")
Result = TypeVar("Result")
UnitIn = TypeVar("UnitIn", contravariant=True)
ResultOut = TypeVar("ResultOut", covariant=True)

Tell = Callable[[Any], None]
"""Sends something small to whoever waits for the unit: how far it is, or a state to continue from."""

Work = Callable[[Unit, Tell], Result]

Progress = Callable[[Any, Any], None]
"""Called with a unit and what was told of it. A unit that is repeated tells everything again."""

Reach = Literal["process", "machine", "cluster"]
"""What workers share with the coordinator: its objects, its files, or nothing but the network."""


class Job(Protocol[UnitIn, ResultOut]):
    """What every worker opens once, on its device, and then does for one unit after the other.

    Jobs, units, results and what is told travel between processes by pickle. Workers hold what is heavy; units only
    name it. A unit has to be idempotent: it is repeated where a worker fails. Work may return a `PendingResult`.
    """

    def open(self, device: torch.device | None) -> Callable[[UnitIn, Tell], ResultOut]:
        """The work; ``None`` is the device that the job has chosen itself."""
        ...


@dataclass(frozen=True)
class Calls(Generic[Unit, Result]):
    """The job of calling a function with each unit; there is nothing to open, and nothing is told."""

    function: Callable[[Unit], Result]

    def open(self, device: torch.device | None) -> Work[Unit, Result]:  # noqa: ARG002
        """The function as work."""
        return lambda unit, _: self.function(unit)


@dataclass(frozen=True)
class PendingResult:
    """A result that a GPU is still busy with: ``finish`` waits for it, in any thread, while the next unit begins.

    It tells nothing.
    """

    finish: Callable[[], Any]


def wait_for(result: Any) -> Any:
    """The result itself, which is waited for where it is pending."""
    return result.finish() if isinstance(result, PendingResult) else result


@dataclass(frozen=True)
class Done(Generic[Unit, Result]):
    """A unit and what came of it."""

    unit: Unit
    result: Result


@dataclass(frozen=True)
class Failed(Generic[Unit]):
    """A unit that failed as often as it may: it raised an error, or its worker was ``lost``.

    ``bad_input`` is what repeating does not change: an `InputError`, or a `StorageError`, which is ``storage``, too.
    """

    unit: Unit
    reason: str
    traceback: str
    attempts: int
    bad_input: bool = False
    lost: bool = False
    storage: bool = False


Outcome = Done[Unit, Result] | Failed[Unit]


def failed(unit: Unit, error: Exception, attempts: int = 1) -> Failed[Unit]:
    """The error that is being handled, as text, because not every error can be pickled."""
    storage = isinstance(error, StorageError)
    bad_input = storage or isinstance(error, InputError)
    reason = str(error) if bad_input else f"{type(error).__name__}: {error}"
    return Failed(unit, reason, traceback.format_exc(), attempts, bad_input, storage=storage)


class Executor(ABC):
    """Runs the units of a job somewhere. Outcomes come as they are finished, in any order; each unit has one.

    Within ``with executor:`` workers stay from one run to the next, which saves starting them again; such blocks may be
    nested.
    """

    reach: ClassVar[Reach]
    """What workers share with the coordinator."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many units are worked on at a time."""

    @property
    @abstractmethod
    def device(self) -> torch.device | None:
        """The kind of device that workers have; None where the job decides."""

    @abstractmethod
    def run(
        self,
        job: Job[Unit, Result],
        units: Iterable[Unit],
        *,
        progress: Progress | None = None,
        key: Callable[[Unit], Hashable] | None = None,
        threads: int | None = None,
    ) -> Generator[Outcome[Unit, Result], None, None]:
        """Close the generator to stop; the workers end.

        Units of the same ``key`` are given to the same worker where possible: it keeps what they share. ``threads`` is
        the number of torch threads of a worker; sums are split by thread, so it may change the last bit of results.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


@contextlib.contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """So many torch threads for a while; None leaves them alone."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
