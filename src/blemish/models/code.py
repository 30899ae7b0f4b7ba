"""Code that comes with a model: it needs permission to run, and cannot end the program."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

from blemish.core.errors import InputError


def needs_permission(model: str, why: str, instead: str) -> InputError:
    """The error for a model that could run code nobody has allowed."""
    return InputError(
        f"{model}: {why}. If you trust it, allow it to run code (--allow-code; in Python: "
        f"open_model(…, allow_code=True)), or {instead}"
    )


@contextlib.contextmanager
def ending_refused(model: str) -> Iterator[None]:
    """Around a model's code: ``sys.exit(0)`` in it is an error that names the model, and not a success.

    So is whatever else would pass by all handlers of errors, but for Ctrl-C, and for what the handler of a signal
    raises while the model happens to be at work.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:
        if raised_by_a_signal(error):
            raise
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise InputError(f"{model}: its code would end the program ({reason}){where_raised(error)}") from error


def where_raised(error: BaseException) -> str:
    """The file and line that raised an error, in brackets."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f" ({Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno})"


def raised_by_a_signal(error: BaseException) -> bool:
    """Whether a handler of signals is among the functions that the error came through."""
    handlers = [getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()]
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False
