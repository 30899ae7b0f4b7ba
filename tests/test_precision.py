"""TF32 is a setting of the whole process: threads that corrupt at once must agree on it, and leave it as it was."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from blemish.corruptions.base import full_precision


def test_threads_switch_tf32_back_on_only_after_the_last() -> None:
    """The second begins while the first is at work, and is still at work when the first has ended."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    seen: dict[str, list[bool]] = {}
    begun, ended = threading.Event(), threading.Event()

    def flags() -> list[bool]:
        return [matmul.allow_tf32, cudnn.allow_tf32]

    def second() -> None:
        with full_precision(torch.device("cuda")):
            begun.set()
            assert ended.wait(10)
            seen["second"] = flags()

    before = flags()
    other = threading.Thread(target=second)
    try:
        matmul.allow_tf32 = cudnn.allow_tf32 = True
        with full_precision(torch.device("cuda")):
            other.start()
            assert begun.wait(10)
            seen["both"] = flags()
        ended.set()
        other.join(10)
        seen["after"] = flags()
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before
    assert seen == {"both": [False, False], "second": [False, False], "after": [True, True]}


def test_many_threads_leave_tf32_as_it_was() -> None:
    def enter(number: int) -> bool:
        with full_precision(torch.device("cuda")):
            time.sleep(0.0002 * (number % 3))
            return torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32

    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32
    try:
        matmul.allow_tf32 = cudnn.allow_tf32 = True
        with ThreadPoolExecutor(8) as pool:
            assert not any(pool.map(enter, range(200)))
            with pytest.raises(ZeroDivisionError), full_precision(torch.device("cuda")):
                raise ZeroDivisionError
        assert (matmul.allow_tf32, cudnn.allow_tf32) == (True, True)
    finally:
        matmul.allow_tf32, cudnn.allow_tf32 = before
