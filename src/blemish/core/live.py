"""Progress that people see: a bar on a terminal or in a notebook, elsewhere (Slurm, CI) a line every half minute."""

from __future__ import annotations

import contextlib
import html
import importlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from blemish.core.printable import printable
from blemish.core.progress import ProgressReport

if TYPE_CHECKING:
    from rich.console import Console

LINE_SECONDS = 30.0
"""How often a line is written where there is no terminal."""

_REDRAWN = 0.25
_WIDTH = 20


def _clock() -> float:
    return time.monotonic()


@contextlib.contextmanager
def shown_progress(title: str, *, first: str = "", unit: str | None = "images") -> Iterator[ProgressReport]:
    """A report that shows how far the work is, where there is somebody to see it; for work that Python code asks for.

    ``title`` names the whole, ``first`` what it begins with; where a ``unit`` is counted, a bar shows its rate.
    """
    from rich.console import Console

    if (display := _notebook_display()) is not None:
        with _notebook(display, first or title) as report:
            yield report
        return
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    chosen = bar(console, first or title, unit) if is_live(console) else lines(title, first, write=_to_stderr)
    with chosen as report:
        yield report


def is_live(console: Console) -> bool:
    """Whether a bar can move there: a terminal that is only pretended, for its colours, may be a file."""
    return console.is_interactive and console.file.isatty()


@contextlib.contextmanager
def bar(console: Console, first: str, unit: str | None) -> Iterator[ProgressReport]:
    """A bar with what is being done, how much of it, and how long it will still take."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class Description(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(printable(task.description))

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:.0f} {unit}/s", style="cyan")

    # Conditions take turns, and the bar behind them is not to move about.
    name = Description(table_column=Column(min_width=_WIDTH, no_wrap=True))
    rate = () if unit is None else (Rate(),)
    columns = (name, BarColumn(), MofNCompleteColumn(), *rate, TimeRemainingColumn())
    # What is only read goes away when it is done, so that the numbers stand alone.
    with Progress(*columns, console=console, transient=unit is None) as progress:
        task = progress.add_task(first, total=None)

        def report(done: int, total: int | None, what: str = "") -> None:
            progress.update(task, completed=done, total=total, description=what or None)

        yield report


@contextlib.contextmanager
def lines(title: str, first: str, *, write: Callable[[str], None]) -> Iterator[ProgressReport]:
    """Plain lines, which come also while nothing is reported."""
    plain = Lines(title, first, clock=_clock, write=write)
    ended = threading.Event()
    # Reading, compiling or resampling may say nothing for minutes, and the line comes all the same.
    beat = threading.Thread(target=plain.keep_writing, args=(ended.wait,), daemon=True)
    beat.start()
    try:
        yield plain.report
    finally:
        ended.set()
        beat.join()
    plain.finish()


def _to_stderr(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody may read it any more, which is no reason to stop
        print(line, file=sys.stderr, flush=True)


def _notebook_display() -> Any:
    """IPython's module that shows things in a cell, where this runs in a notebook; else None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return importlib.import_module("IPython.display")


@contextlib.contextmanager
def _notebook(display: Any, first: str) -> Iterator[ProgressReport]:
    lines = Lines(first, clock=_clock)
    handle = display.display(display.HTML(""), display_id=True)
    drawn = -_REDRAWN

    def report(done: int, total: int | None, what: str = "") -> None:
        nonlocal drawn
        lines.take(done, total, what)
        if (now := _clock()) - drawn >= _REDRAWN:
            drawn = now
            handle.update(display.HTML(_bar_html(done, total, lines.text(now))))

    yield report
    handle.update(display.HTML(""))


def _bar_html(done: int, total: int | None, text: str) -> str:
    reached = f' value="{done}" max="{total}"' if total else ""
    return f"<progress{reached}></progress> {html.escape(text)}"


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
        write: Callable[[str], None] = _to_stderr,
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
            self._write_if_due(self._take(done, total, what))

    def take(self, done: int, total: int | None, what: str = "") -> None:
        """Take it in, and write nothing."""
        with self._lock:
            self._take(done, total, what)

    def _take(self, done: int, total: int | None, what: str) -> float:
        now = self._clock()
        if self._phase is None or total != self._total or done < self._done:  # something else has begun
            self._phase = (now, done)
        self._done, self._total, self._what = done, total, what or self._what
        return now

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
        self._write(self.text(now))

    def text(self, now: float) -> str:
        """What there is to say."""
        parts = [self._what] if self._what else []
        if self._total:
            parts.append(f"{self._done:,} of {self._total:,} ({100 * self._done // self._total} %)")
        parts.append(_duration(now - self._begun))
        if (left := self._left(now)) is not None:
            parts.append(f"about {_duration(left)} left")
        return printable(f"{self._title}: {', '.join(parts)}")

    def _left(self, now: float) -> float | None:
        """Seconds until this is done, at the pace so far; what was there at the beginning took no time."""
        if self._phase is None or not self._total:
            return None
        since, before = self._phase
        made, missing = self._done - before, self._total - self._done
        return (now - since) * missing / made if made > 0 and missing > 0 else None


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
