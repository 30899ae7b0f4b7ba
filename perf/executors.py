"""What executors do with workers that start, hurry, wait and die: python perf/executors.py [--ray] [--alternatives].

Beside ours, with --alternatives, what they could be made of instead: a `ProcessPoolExecutor` of one worker for each,
and with --ray actors that Ray restarts and whose calls it repeats. The same jobs for all, on two workers. Linux only.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from blemish.evaluation.executors import Done, Executor, PendingResult, Processes, RayExecutor, wait_for

HANGS = 60.0  # seconds after which we say so


@dataclass(frozen=True)
class Job:
    """Units that take ``begin`` seconds, and ``finish`` more while the next one may begin.

    The worker of some units is killed: once, always, or once while it sends 64 MB.
    """

    folder: Path
    begin: float = 0.0
    finish: float | None = None
    kill: tuple[int, ...] = ()
    kill_always: tuple[int, ...] = ()
    kill_sending: tuple[int, ...] = ()

    def open(self, device: torch.device | None) -> Callable[[int, Any], Any]:  # noqa: ARG002
        """Nothing to open."""
        return self._work

    def _work(self, unit: int, tell: Callable[[int], None]) -> Any:
        tell(0)
        time.sleep(self.begin)
        return PendingResult(partial(self._end, unit)) if self.finish is not None else self._end(unit)

    def _end(self, unit: int) -> bytes:
        time.sleep(self.finish or 0.0)
        if unit in self.kill_always or (unit in self.kill and self._once(unit)):
            os.kill(os.getpid(), signal.SIGKILL)
        if unit in self.kill_sending and self._once(unit):
            threading.Thread(target=_kill_within_a_long_write, daemon=True).start()
            return bytes(2**26)
        return b"done"

    def _once(self, unit: int) -> bool:
        try:
            (self.folder / str(unit)).open("x").close()
        except FileExistsError:
            return False
        return True


def _kill_within_a_long_write() -> None:
    while True:
        for task in Path("/proc/self/task").iterdir():
            call = (task / "syscall").read_text().split()
            if call[0] == "1" and int(call[3], 16) > 2**20:
                os.kill(os.getpid(), signal.SIGKILL)


Run = Callable[[Job, Sequence[int]], tuple[int, list[int]]]
"""Does the units of a job; how many were done, and which failed."""


def ours(executor: Executor) -> Run:
    """An executor of the library."""

    def run(job: Job, units: Sequence[int]) -> tuple[int, list[int]]:
        outcomes = list(executor.run(job, units))
        done = [outcome.unit for outcome in outcomes if isinstance(outcome, Done)]
        return len(done), sorted({outcome.unit for outcome in outcomes} - {*done})

    return run


def _do(job: Job, unit: int) -> Any:
    return wait_for(job.open(None)(unit, lambda _: None))


def pools_of_one(retries: int = 2) -> Run:
    """A pool of the standard library for each worker, so that a death breaks one of them."""
    pools: list[ProcessPoolExecutor | None] = [None, None]

    def pool(place: int) -> ProcessPoolExecutor:
        found = pools[place] or ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        pools[place] = found
        return found

    def run(job: Job, units: Sequence[int]) -> tuple[int, list[int]]:
        waiting, attempts, failed, done = list(units), dict.fromkeys(units, 0), [], 0
        at_work: dict[Future[Any], tuple[int, int]] = {}
        while waiting or at_work:
            for place in {0, 1} - {place for place, _ in at_work.values()}:
                if waiting:
                    unit = waiting.pop(0)
                    at_work[pool(place).submit(_do, job, unit)] = place, unit
            for future in wait(at_work, return_when=FIRST_COMPLETED)[0]:
                place, unit = at_work.pop(future)
                try:
                    future.result()
                    done += 1
                except BrokenProcessPool:
                    pools[place] = None
                    attempts[unit] += 1
                    (waiting if attempts[unit] <= retries else failed).append(unit)
        return done, failed

    return run


class _Actor:
    def do(self, job: Job, unit: int) -> Any:
        return _do(job, unit)


def rays_own_retries(ahead: int) -> Run:
    """Two actors that Ray restarts, with so many calls at each, which it repeats."""
    import ray

    kind = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=2)(_Actor)
    actors = [kind.remote(), kind.remote()]

    def run(job: Job, units: Sequence[int]) -> tuple[int, list[int]]:
        waiting, failed, done = list(units), [], 0
        at_work: dict[Any, tuple[int, int]] = {}
        while waiting or at_work:
            for place, actor in enumerate(actors):
                while waiting and sum(there == place for there, _ in at_work.values()) < ahead:
                    unit = waiting.pop(0)
                    at_work[actor.do.remote(job, unit)] = place, unit
            for ref in ray.wait(list(at_work), num_returns=1)[0]:
                _, unit = at_work.pop(ref)
                try:
                    ray.get(ref)
                    done += 1
                except ray.exceptions.RayError:
                    failed.append(unit)
        return done, sorted(failed)

    return run


def measure(name: str, run: Run, *, sending: bool) -> None:
    """Print a line for each kind of job."""
    with tempfile.TemporaryDirectory() as text:
        jobs: dict[str, tuple[Job, int]] = {
            "start two workers, a unit for each": (Job(Path(text)), 2),
            "200 units of nothing": (Job(Path(text)), 200),
            "40 units of 50 ms": (Job(Path(text), 0.05), 40),
            "40 units of 50 ms and 50 ms more for results": (Job(Path(text), 0.05, 0.05), 40),
            "40 units of 50 ms, two workers killed": (Job(Path(text), 0.05, kill=(5, 20)), 40),
            "40 units of 50 ms, unit 5 kills always": (Job(Path(text), 0.05, kill_always=(5,)), 40),
            "and 50 ms more for results, unit 5 kills always": (
                Job(Path(text), 0.05, 0.05, kill_always=(5,)),
                40,
            ),
        }
        if sending:
            jobs["4 units, a worker killed while it sends 64 MB"] = (Job(Path(text), kill_sending=(1,)), 4)
        for title, (job, count) in jobs.items():
            found: list[tuple[int, list[int]]] = []
            clock = time.perf_counter()
            thread = threading.Thread(
                target=lambda job=job, count=count, found=found: found.append(run(job, range(count))), daemon=True
            )
            thread.start()
            thread.join(HANGS)
            seconds = f"{time.perf_counter() - clock:.2f} s" if found else "hangs"
            done, failed = found[0] if found else ("?", "?")
            print(f"| {name} | {title} | {seconds} | {done} | {failed} |", flush=True)
            if not found:
                return


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ray", action="store_true")
    parser.add_argument("--alternatives", action="store_true")
    options = parser.parse_args()
    print("| workers | job | time | done | failed |\n|---|---|---:|---:|---|")
    with Processes(2, threads=1) as executor:
        measure("Processes", ours(executor), sending=True)
    if options.alternatives:
        measure("ProcessPoolExecutor(1), two of them", pools_of_one(), sending=True)
    if options.ray:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # Ray's workers import this file
        with RayExecutor("local", 2, False, threads=1) as executor:
            measure("RayExecutor", ours(executor), sending=False)
        for ahead in (1, 2) if options.alternatives else ():
            measure(f"Ray's own retries, {ahead} at a worker", rays_own_retries(ahead), sending=False)
    os._exit(0)  # whatever hangs


if __name__ == "__main__":
    import executors  # workers import it by this name

    executors.main()
