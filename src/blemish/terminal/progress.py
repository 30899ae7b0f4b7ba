"""Progress of a command, on stderr: Ctrl-C ends it in peace."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

import typer

from blemish.core.live import bar, is_live, lines
from blemish.core.progress import ProgressReport
from blemish.terminal.printing import complain, stderr

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

_KEPT = "what is finished is kept. Run the same command again to continue."

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
        with bar(console, first or title, unit) if is_live(console) else lines(title, first, write=_write) as report:
            return work(report)
    except KeyboardInterrupt:
        console.print(f"stopped; {kept}", style="yellow")
        raise typer.Exit(INTERRUPTED) from None


def _write(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # nobody may read it any more, which is no reason to stop
        complain(line, style="")
