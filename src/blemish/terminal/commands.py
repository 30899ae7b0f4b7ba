"""What every command shares: one way to report errors."""

from __future__ import annotations

import contextlib
import errno
import functools
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import typer

from blemish.core.errors import InputError, Notice, StorageError, WorkerError
from blemish.models.code import raised_by_a_signal, where_raised
from blemish.terminal.printing import complain, unwrapped

BAD_INPUT = 2
LOST_WORKERS = 1

# A name that is too long, a place without permission, a full disk: no traceback would say more.
_OF_THE_PLACE = (
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
)

P = ParamSpec("P")
R = TypeVar("R")


def exit_on_input_error(command: Callable[P, R]) -> Callable[P, R]:
    """Turn bad input and storage that fails into one line on stderr and exit code 2; and notices into lines.

    Lost workers give exit code 1. No command leaves by itself with code 0 before its end, so whatever does is someone
    else's code.
    """

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with _notices_printed(), _compiling_told():
                return command(*args, **kwargs)
        except (InputError, StorageError) as error:
            raise _failed(str(error)) from None
        except WorkerError as error:
            raise _failed(str(error), LOST_WORKERS) from None
        except OSError as error:
            if error.errno not in _OF_THE_PLACE:
                raise
            raise _failed(f"{error.filename}: {error.strerror}") from None
        except SystemExit as error:
            if raised_by_a_signal(error):
                raise
            raise _failed(f"code that was run would end the program (exit {error.code}){where_raised(error)}") from None
        except typer.Exit as error:
            if error.exit_code == 0:
                raise _failed(f"code that was run would end the program{where_raised(error)}") from None
            raise

    guarded.__doc__ = unwrapped(command.__doc__)
    return guarded


def _failed(message: str, code: int = BAD_INPUT) -> typer.Exit:
    complain(f"error: {message}", style="red")
    return typer.Exit(code)


@contextlib.contextmanager
def _compiling_told() -> Iterator[None]:
    """Tell whoever waits at a terminal how long kernels were compiled; logs tell it with -v. Nothing is imported."""
    try:
        yield
    finally:
        kernels = sys.modules.get("blemish.ops.compiled.jit")
        if kernels is not None and sys.stderr.isatty() and (seconds := sum(kernels.took)) >= 1:
            complain(f"{seconds:.0f} s of this went into compiling kernels for this processor, once", style="dim")
            kernels.took.clear()


@contextlib.contextmanager
def _notices_printed() -> Iterator[None]:
    """Print notices as lines on stderr, each once, so that what is printed for other programs stays as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", Notice)
        others, shown = warnings.showwarning, set[str]()

        def show(message: Warning | str, category: type[Warning], *args: Any) -> None:
            if not issubclass(category, Notice):
                others(message, category, *args)
            elif str(message) not in shown:
                shown.add(str(message))
                complain(f"note: {message}")

        warnings.showwarning = show  # type: ignore[assignment]
        yield
