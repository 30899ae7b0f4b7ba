"""Progress of long work: a bar with a rate and the time that is left, and a quiet log where there is no terminal."""

from __future__ import annotations

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from blemish.cli.terminal import line, stderr

__all__ = ["INTERRUPTED", "Description", "progress_bar"]

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

_WIDTH = 20


class Description(ProgressColumn):
    """What is being done: a name of somebody else's may be in it."""

    def render(self, task: Task) -> Text:
        """The description in one line."""
        return line(task.description)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:.0f} images/s", style="cyan")


def progress_bar() -> Progress:
    """A progress bar on stderr; nothing where stderr is a file, which has no use for a bar."""
    # Conditions take turns, and the bar behind them is not to move about.
    name = Description(table_column=Column(min_width=_WIDTH, no_wrap=True))
    columns = (name, BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    console = stderr()
    return Progress(*columns, console=console, disable=not console.is_terminal)
