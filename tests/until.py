"""Waiting for what another process does, however slow the machine is."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

PATIENCE = 600.0
"""Seconds until a test that hangs is ended. It measures nothing: no test may ask how long something takes."""


def until(happened: Callable[[], T], process: subprocess.Popen[Any] | None = None) -> T:
    """What ``happened`` returns once it is true; an error if the process that should do it ends before that."""
    end = time.monotonic() + PATIENCE
    while not (found := happened()):
        if process is not None and process.poll() is not None:
            found = happened()
            assert found, f"the process ended with {process.returncode} before that"
            return found
        if time.monotonic() > end:
            raise TimeoutError(f"it has not happened in {PATIENCE:.0f} s")
        time.sleep(0.01)
    return found
