"""Settings that the CPU timings share."""

from __future__ import annotations

import numpy as np
import torch


def settle() -> None:
    """One thread; and a large block freed once, after which the C library stops returning memory all the time.

    Any long-running process has got there by itself, and whatever is timed in this one profits.
    """
    torch.set_num_threads(1)
    np.ones(31 * 2**20, np.uint8)
