"""Progress of long work: a bar on a terminal, and elsewhere (Slurm, CI, files) a plain line every half minute."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from blemish.core.printable import printable
from blemish.core.progress import ProgressReport
from blemish.terminal.printing import complain, line, stderr

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

LINE_SECONDS = 30.0
"""How often a line is written where there is no terminal."""

_KEPT = "what is finished is kept. Run the same command again to continue."
_WIDTH = 20

R = TypeVar("R")

Report = ProgressReport


def with_progress(
    title: str, work: Callable[[Report], R], *, first: str = "", unit: str | None = "images", kept: str = _KEPT
) -> R:
    """Do the work while its progress is shown on stderr; Ctrl-C ends it in peace.

    ``title`` names the whole, ``first`` what it begins with, and ``kept`` says what Ctrl-C leaves. Where a ``unit`` is
    counted, the bar shows its rate.
    """
    console = stderr()
    try:
        # A terminal that is only pretended, for its colours, gets lines: a bar would fill the file that it goes to.
        live = console.is_interactive and console.file.isatty()
        with _bar(console, first or title, unit) if live else _lines(title, first) as report:
            return work(report)
    except KeyboardInterrupt:
        console.print(f"stopped; {kept}", style="yellow")
        raise typer.Exit(INTERRUPTED) from None


class _Description(ProgressColumn):
    def render(self, task: Task) -> Text:
        return line(task.description)


class _Rate(ProgressColumn):
    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.0f} {self.unit}/s", style="cyan")


@contextlib.contextmanager
def _bar(console: Any, first: str, unit: str | None) -> Iterator[Report]:
    # Conditions take turns, and the bar behind them is not to move about.
    name = _Description(table_column=Column(min_width=_WIDTH, no_wrap=True))
    rate = () if unit is None else (_Rate(unit),)
    columns = (name, BarColumn(), MofNCompleteColumn(), *rate, TimeRemainingColumn())
    # What is only read goes away when it is done, so that the numbers stand alone.
    with Progress(*columns, console=console, transient=unit is None) as progress:
        task = progress.add_task(first, total=None)

        def report(done: int, total: int | None, what: str = "") -> None:
            progress.update(task, completed=done, total=total, description=what or None)

        yield report


@contextlib.contextmanager
def _lines(title: str, first: str) -> Iterator[Report]:
    lines = Lines(title, first, clock=_clock)
    ended = threading.Event()
    # Reading, compiling or resampling may say nothing for minutes, and the line comes all the same.
    beat = threading.Thread(target=lines.keep_writing, args=(ended.wait,), daemon=True)
    beat.start()
    try:
        yield lines.report
    finally:
        ended.set()
        beat.join()
    lines.finish()


def _clock() -> float:
    return time.monotonic()


def _write(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody may read it any more, which is no reason to stop
        complain(line, style="")


class Lines:
    """Plain lines about long work: one every half minute, and one at the end. What is quicker says nothing.

    >>> now = iter([0, 10, 40, 100])
    >>> lines = Lines("run", clock=lambda: next(now), write=print)
    >>> lines.report(0, 500, "fog@1")
    >>> lines.report(100, 500, "fog@2")
    run: fog@2, 100 of 500 (20 %), 0:00:40, about 0:02:00 left
    >>> lines.finish()
    run: done in 0:01:40
    """

    def __init__(
        self,
        title: str,
        first: str = "",
        *,
        clock: Callable[[], float] = _clock,
        write: Callable[[str], None] = _write,
    ) -> None:
        self._title, self._what = title, first
        self._clock, self._write = clock, write
        self._done = 0
        self._total: int | None = None
        self._begun = self._written = self._clock()
        self._phase: tuple[float, int] | None = None
        self._lock = threading.Lock()

    def report(self, done: int, total: int | None, what: str = "") -> None:
        """Take it in, and write a line if one is due."""
        with self._lock:
            now = self._clock()
            if self._phase is None or total != self._total or done < self._done:  # something else has begun
                self._phase = (now, done)
            self._done, self._total, self._what = done, total, what or self._what
            self._write_if_due(now)

    def keep_writing(self, wait: Callable[[float], bool]) -> None:
        """Write lines that are due although nothing is reported, until ``wait`` says that it is over."""
        pause = LINE_SECONDS
        while not wait(pause):
            with self._lock:
                now = self._clock()
                self._write_if_due(now)
                pause = LINE_SECONDS - (now - self._written)

    def finish(self) -> None:
        """The line at the end, where any came before it."""
        if self._written == self._begun:
            return
        self._write(f"{self._title}: done in {_duration(self._clock() - self._begun)}")

    def _write_if_due(self, now: float) -> None:
        if now - self._written < LINE_SECONDS:
            return
        self._written = now
        parts = [self._what] if self._what else []
        if self._total:
            parts.append(f"{self._done:,} of {self._total:,} ({100 * self._done // self._total} %)")
        parts.append(_duration(now - self._begun))
        if (left := self._left(now)) is not None:
            parts.append(f"about {_duration(left)} left")
        self._write(printable(f"{self._title}: {', '.join(parts)}"))

    def _left(self, now: float) -> float | None:
        """Seconds until this is done, at the pace so far; what was there at the beginning took no time."""
        if self._phase is None or not self._total:
            return None
        since, before = self._phase
        made, missing = self._done - before, self._total - self._done
        return (now - since) * missing / made if made > 0 and missing > 0 else None


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
