"""Where text leaves for the terminal: names and messages of others are shown, never obeyed.

Commands print through here alone.
"""

from __future__ import annotations

import contextlib
import errno
import inspect
import sys
import traceback
import warnings
from collections.abc import Iterable, Iterator
from typing import IO, Any

import typer
from rich.console import Console, RenderableType
from rich.segment import Segment
from rich.text import Text
from typer.core import TyperGroup

from blemish.core.printable import printable, printable_lines

APP_SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}
"""How every application is set up that has commands in it."""

_HIDDEN = "\ufffd"


class _Console(Console):
    """A console without markup, in which control characters of a text are seen, not obeyed.

    Its own commands, colours and the moves of a progress bar, do not pass through here.
    """

    def on_broken_pipe(self) -> None:
        """Nobody reads on, as after ``| head``: no fault of ours or of a model's, so nothing is said."""
        raise BrokenPipeError(errno.EPIPE, "nobody reads what is printed")

    def render_str(self, text: str, **settings: Any) -> Text:
        return super().render_str(printable_lines(text), **{**settings, "markup": False, "emoji": False})

    def render(self, renderable: RenderableType, *options: Any, **named: Any) -> Iterable[Segment]:
        if isinstance(renderable, Text) and printable_lines(renderable.plain) != renderable.plain:
            renderable = renderable.copy()
            # A sign for a sign, as styles are kept by position.
            renderable.plain = "".join(sign if printable_lines(sign) == sign else _HIDDEN for sign in renderable.plain)
        return super().render(renderable, *options, **named)


def console(*, to_stderr: bool = False, file: IO[str] | None = None, width: int | None = None) -> Console:
    """A console, made on demand, so that a redirected stream is honoured."""
    return _Console(stderr=to_stderr, file=file, width=width, highlight=False, markup=False, emoji=False)


def stderr() -> Console:
    """A console for messages."""
    return console(to_stderr=True)


def line(text: str, style: str = "") -> Text:
    """A single line of text, whatever is in it."""
    return Text(printable(text), style=style)


def say(message: str, style: str = "") -> None:
    """A line of text, never wrapped: file names stay whole and can be copied."""
    console().print(line(message, style), soft_wrap=True)


def complain(message: str, style: str = "yellow") -> None:
    """A message on stderr, never wrapped. Further lines are set in, so that none of them can pass for one of ours."""
    text = printable_lines(message).replace("\n", "\n  ")
    stderr().print(Text(text, style=style), soft_wrap=True)


def show(table: RenderableType) -> None:
    """Print a table."""
    console().print(table)


def emit(text: str) -> None:
    """Print what another program may read, such as JSON: control characters become escapes, all else stays."""
    sys.stdout.write(printable_lines(text))
    sys.stdout.flush()


def unwrapped(text: str | None) -> str:
    """A help text with its paragraphs in one line each, for terminals of any width; indented lines stay.

    >>> unwrapped("First.\\n\\n    A paragraph\\n    goes on.\\n\\n      an example\\n")
    'First.\\n\\nA paragraph goes on.\\n\\n  an example'
    """
    paragraphs = inspect.cleandoc(text or "").split("\n\n")
    return "\n\n".join(part if part.startswith(" ") else part.replace("\n", " ") for part in paragraphs)


class Group(TyperGroup):
    """Commands whose complaints about what was typed are printable, too."""

    def make_context(self, *args: Any, **settings: Any) -> Any:
        """Read what was typed."""
        with _printable_messages():
            return super().make_context(*args, **settings)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        with _printable_messages():
            return super().invoke(ctx)


@contextlib.contextmanager
def _printable_messages() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        # Typer's errors are click's own, or those of a copy of it, depending on its version.
        message = getattr(error, "message", None)
        if isinstance(message, str) and hasattr(error, "format_message"):
            error.message = printable_lines(message)  # type: ignore[attr-defined]
        raise


class App(typer.Typer):
    """An application whose warnings, and tracebacks of errors that nobody expected, are printable."""

    def __call__(self, *args: Any, **settings: Any) -> Any:
        """Run the command that was typed."""
        plain = warnings.formatwarning
        warnings.formatwarning = lambda *what, **how: printable_lines(plain(*what, **how))
        try:
            return super().__call__(*args, **settings)
        except Exception as error:
            sys.stderr.write(printable_lines("".join(traceback.format_exception(error))))
            raise SystemExit(1) from None
        finally:
            warnings.formatwarning = plain
