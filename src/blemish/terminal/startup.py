"""What the command line sets up before a command runs: the log on stderr, and SIGTERM as Ctrl-C."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType

from blemish.terminal.printing import complain


class _Lines(logging.Handler):
    """Prints each message as a line that is shown, never obeyed."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(self.format(record), style="dim")


def log_to_stderr(verbosity: int) -> None:
    """Print what the ``blemish`` logger says: what is done (1), or every detail (2 and more)."""
    logger = logging.getLogger("blemish")
    for handler in [handler for handler in logger.handlers if isinstance(handler, _Lines)]:
        logger.removeHandler(handler)
    lines = _Lines()
    lines.setFormatter(logging.Formatter("%(asctime)s %(name)s: %(message)s", "%H:%M:%S"))
    logger.addHandler(lines)
    logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)


def stop_on_sigterm() -> None:
    """Let SIGTERM, which schedulers and containers send, end a command as Ctrl-C does; finished files are kept.

    To be called again after a cluster was joined, because Ray sets a handler that ends in a dump of its stack.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupted)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # who is in a hurry may ask twice
    raise KeyboardInterrupt
