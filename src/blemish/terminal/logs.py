"""The log of the library on stderr, where the command line asks for it."""

from __future__ import annotations

import logging

from blemish.terminal.printing import complain

__all__ = ["log_to_stderr"]


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
