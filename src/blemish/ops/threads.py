"""Work whose rounding depends on the number of threads, done by one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def one_thread(device: torch.device) -> Iterator[None]:
    """A single torch thread for work on a CPU; other devices have none of ours."""
    before = torch.get_num_threads()
    if device.type != "cpu" or before == 1:
        yield
        return
    try:
        torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(before)
