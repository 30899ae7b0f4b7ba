"""What a command does when it is asked to end: SIGTERM, which schedulers and containers send, is taken as Ctrl-C."""

from __future__ import annotations

import signal
import threading
from types import FrameType

__all__ = ["stop_on_sigterm"]


def stop_on_sigterm() -> None:
    """Let SIGTERM end a command as Ctrl-C does: workers are ended, unfinished files removed, finished ones kept.

    To be called again after a cluster was joined, because Ray sets a handler that ends in a dump of its stack.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _interrupted)


def _interrupted(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # who is in a hurry may ask twice
    raise KeyboardInterrupt
