"""Jobs for the tests of executors: importable by worker processes, which unpickle them by name."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError, StorageError
from blemish.core.folders import held_folder
from blemish.data.source import Source
from blemish.evaluation import run as evaluation_run
from blemish.evaluation.executors.base import PendingResult, Tell
from blemish.models.base import Preprocessing
from until import until

Work = Callable[[Any, Tell], Any]

evaluate = partial(evaluation_run.evaluate, allow_chance=True)
"""What `Net` says of `pictures` is chance."""


def full_disk(unit: int) -> int:
    """A unit's own number, but for the second, for which there is no room."""
    if unit == 1:
        raise StorageError("cannot write out.npy: No space left on device")
    return unit


def once(path: Path) -> bool:
    """Whether this is the first call for a path, in any process."""
    try:
        path.open("x").close()
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class Squares:
    """Squares of numbers; a few of them go wrong in some way, for a while or for ever."""

    folder: Path
    die: tuple[int, ...] = ()
    die_always: tuple[int, ...] = ()
    fail_once: tuple[int, ...] = ()
    fail_always: tuple[int, ...] = ()
    refuse: tuple[int, ...] = ()
    seconds: float = 0.0

    def open(self, device: torch.device | None) -> Work:  # noqa: ARG002
        (self.folder / f"opened-{os.getpid()}").touch()
        return self._work

    def _work(self, unit: int, tell: Tell) -> tuple[int, int, int]:
        tell("begun")
        time.sleep(self.seconds)
        if unit in self.die_always or (unit in self.die and once(self.folder / f"died-{unit}")):
            os.kill(os.getpid(), signal.SIGKILL)
        if unit in self.fail_always or (unit in self.fail_once and once(self.folder / f"failed-{unit}")):
            raise ZeroDivisionError(f"unit {unit}")
        if unit in self.refuse:
            raise InputError(f"{unit} is refused; expected another number")
        tell("ended")
        return unit * unit, os.getpid(), torch.get_num_threads()


@dataclass(frozen=True)
class Afterwards:
    """Squares that are finished while the next one begins; some fail or kill only then, once or for ever."""

    folder: Path
    fail_once: tuple[int, ...] = ()
    fail_always: tuple[int, ...] = ()
    die: tuple[int, ...] = ()
    die_always: tuple[int, ...] = ()
    refuse: tuple[int, ...] = ()
    not_to_send: tuple[int, ...] = ()
    leave: tuple[int, ...] = ()
    at_once: tuple[int, ...] = ()

    def open(self, device: torch.device | None) -> Work:  # noqa: ARG002
        return self._begin

    def _begin(self, unit: int, tell: Tell) -> Any:  # noqa: ARG002
        return self._finish(unit) if unit in self.at_once else PendingResult(partial(self._finish, unit))

    def _finish(self, unit: int) -> Any:
        if unit in self.die_always or (unit in self.die and once(self.folder / f"died-{unit}")):
            os.kill(os.getpid(), signal.SIGKILL)
        if unit in self.fail_always or (unit in self.fail_once and once(self.folder / f"failed-{unit}")):
            raise ZeroDivisionError(f"unit {unit}")
        if unit in self.refuse:
            raise InputError(f"{unit} is refused; expected another number")
        if unit in self.leave:
            raise SystemExit(3)
        return (lambda: unit) if unit in self.not_to_send else unit * unit


@dataclass(frozen=True)
class Weighty:
    """Results of many bytes; the worker is killed in the middle of sending the first, once."""

    folder: Path

    def open(self, device: torch.device | None) -> Work:  # noqa: ARG002
        return self._work

    def _work(self, unit: int, tell: Tell) -> bytes:  # noqa: ARG002
        if once(self.folder / "once"):
            threading.Thread(target=self._kill, daemon=True).start()
        return bytes(2**26)

    def _kill(self) -> None:
        """Once a thread is within a call that writes more than fits into a pipe."""
        while True:
            for task in Path("/proc/self/task").iterdir():
                call = (task / "syscall").read_text().split()
                if call[0] == "1" and int(call[3], 16) > 2**20:
                    (self.folder / "killed").touch()
                    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Overlapping:
    """Each unit but the last is finished only after the next has begun; one worker that waits would wait for ever."""

    folder: Path
    last: int

    def open(self, device: torch.device | None) -> Work:  # noqa: ARG002
        return self._work

    def _work(self, unit: int, tell: Tell) -> PendingResult:
        tell(unit)
        (self.folder / f"begun-{unit}").touch()
        return PendingResult(partial(self._finish, unit))

    def _finish(self, unit: int) -> int:
        if unit < self.last:
            until((self.folder / f"begun-{unit + 1}").exists)
        return unit


@dataclass(frozen=True)
class Unopenable:
    """A job that cannot be opened."""

    how: str

    def open(self, device: torch.device | None) -> Work:  # noqa: ARG002
        if self.how == "input":
            raise InputError("no such model; expected another")
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise RuntimeError("broken")


@dataclass(frozen=True)
class Sleeper:
    """Work that takes for ever, and says where it is done."""

    folder: Path

    def open(self, device: torch.device | None) -> Work:  # noqa: ARG002
        return self._work

    def _work(self, unit: int, tell: Tell) -> None:  # noqa: ARG002
        (self.folder / f"pid-{os.getpid()}").touch()
        threading.Event().wait()


class Net(torch.nn.Module):
    """A small network whose scores depend on every pixel; on purpose it kills its process once, or fails for ever."""

    preprocessing = Preprocessing()

    def __init__(self, kill: Path | None = None, refuse_bright: bool = False, seconds: float = 0.0) -> None:
        super().__init__()
        self.kill, self.refuse_bright, self.seconds = kill, refuse_bright, seconds
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            self.layers = torch.nn.Sequential(
                torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten()
            )
            self.last = torch.nn.Linear(32, 7)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        time.sleep(self.seconds)
        in_worker = multiprocessing.parent_process() is not None or "RAY_JOB_ID" in os.environ
        if self.kill is not None and in_worker and once(self.kill):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.refuse_bright and float(images.mean()) > 0.6:
            raise OSError("too bright")
        return self.last(self.layers(images))  # type: ignore[no-any-return]


def picture(i: int, sizes: tuple[tuple[int, int], ...]) -> Image.Image:
    levels = np.random.default_rng(i).integers(0, 256, (*sizes[i % len(sizes)], 3), dtype=np.uint8)
    return Image.fromarray(levels)


def pictures(count: int = 40, sizes: tuple[tuple[int, int], ...] = ((32, 32), (24, 40), (32, 32))) -> Source:
    """Images of two shapes, which other machines can open as well."""
    return Source(
        name="pictures",
        names=tuple(f"{i % 7}/{i}.png" for i in range(count)),
        ids=np.arange(count, dtype=np.int64),
        labels=np.arange(count, dtype=np.int64) % 7,
        read=lambda i: picture(i, sizes),
        classes=tuple("abcdefg"),
        reopen=partial(pictures, count, sizes),
    )


def benchmark(*conditions: str) -> Benchmark:
    return Benchmark("mine", "", "error", tuple(parse_condition(text) for text in conditions), Protocol(seed=3))


def records_of(folder: Path) -> dict[str, bytes]:
    """All records below a folder, as they lie on disk."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*/records/*.parquet"))}


def compete(folder: Path, rounds: int, seen: multiprocessing.Queue[str]) -> None:
    """Hold the folder again and again; whoever is not alone in it says so."""
    mark, done = folder / "mark", 0
    while done < rounds:
        try:
            with held_folder(folder):
                if mark.exists():
                    seen.put("two at once")
                mark.write_text("here")
                time.sleep(0.001)
                mark.unlink()
                done += 1
        except StorageError as error:
            if "another run is writing" not in str(error):
                seen.put(str(error))
    seen.put("done")
