"""Settings of the caller: threads that corrupt at once must agree on them, and leave them as they were."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from blemish.corruptions.precision import full_precision
from until import PATIENCE


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
            assert ended.wait(PATIENCE)
            seen["second"] = flags()

    before = flags()
    other = threading.Thread(target=second)
    try:
        matmul.allow_tf32 = cudnn.allow_tf32 = True
        with full_precision(torch.device("cuda")):
            other.start()
            assert begun.wait(PATIENCE)
            seen["both"] = flags()
        ended.set()
        other.join(PATIENCE)
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


def forget_settings_of_products() -> None:
    torch.set_float32_matmul_precision("highest")
    for owner in (torch.backends, torch.backends.mkldnn.matmul, torch.backends.cuda.matmul):
        owner.fp32_precision = "none"  # type: ignore[union-attr]


@pytest.fixture
def settings_of_products() -> Iterator[None]:
    """Whatever is said about products, the old way or the new, is forgotten before and after a test."""
    forget_settings_of_products()
    yield
    forget_settings_of_products()


@pytest.mark.usefixtures("settings_of_products")
class TestProducts:
    """Torch can be told to multiply float32 on a CPU in bfloat16."""

    @pytest.mark.parametrize("how", ["old", "new", "for all"])
    def test_are_exact_meanwhile_and_as_told_afterwards(self, how: str) -> None:
        matmul = torch.backends.mkldnn.matmul
        if how == "old":
            torch.set_float32_matmul_precision("medium")
        elif how == "new":
            matmul.fp32_precision = "bf16"
        else:
            torch.backends.fp32_precision = "bf16"  # type: ignore[attr-defined]
        assert matmul.fp32_precision == "bf16"
        with full_precision(torch.device("cpu")), full_precision(torch.device("cpu")):
            assert matmul.fp32_precision == "ieee"
        assert matmul.fp32_precision == "bf16"
        if how == "for all":
            torch.backends.fp32_precision = "none"  # type: ignore[attr-defined]
            assert matmul.fp32_precision == "none"

    def test_tf32_told_the_new_way(self) -> None:
        matmul = torch.backends.cuda.matmul
        matmul.fp32_precision = "tf32"  # type: ignore[attr-defined]
        with full_precision(torch.device("cuda")):
            assert matmul.fp32_precision == "ieee"  # type: ignore[attr-defined]
        assert matmul.fp32_precision == "tf32"  # type: ignore[attr-defined]


def test_other_devices_by_default_do_not_matter() -> None:
    with torch.device("meta"):
        with full_precision(torch.device("cpu")):
            assert torch.zeros(1).device.type == "cpu"
        assert torch.zeros(1).device.type == "meta"
