"""Torch's settings while pixels are made: they may not depend on what the caller has switched on."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar, cast

import torch


@contextlib.contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Plain float32 without gradients; new tensors lie on the CPU unless another device is named."""
    with contextlib.ExitStack() as settings:
        settings.enter_context(torch.no_grad())
        settings.enter_context(torch.autocast(device.type, enabled=False))
        settings.enter_context(cpu_by_default())
        settings.enter_context((_no_tf32 if device.type == "cuda" else _no_bfloat16).held())
        yield


_Function = TypeVar("_Function", bound=Callable[..., Any])


def eagerly(function: _Function) -> _Function:
    """A function that `torch.compile` calls as it is, between what it compiles: it cannot trace NumPy and kernels."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return torch.compiler.disable(function)(*args, **kwargs)  # type: ignore[no-untyped-call]
        return function(*args, **kwargs)

    return cast(_Function, call)


_NOTHING = contextlib.nullcontext()


def cpu_by_default() -> contextlib.AbstractContextManager[Any]:
    """New tensors lie on the CPU unless another device is named. Each thread has its own setting."""
    # Asking torch for its default device takes four times as long as looking where a tensor lies.
    return _NOTHING if torch.empty(0).is_cpu else torch.device("cpu")


class _Shared:
    """A setting of the whole process, made by the first thread that needs it and undone after the last."""

    def __init__(self, setting: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
        self._setting = setting
        self._lock = threading.Lock()
        self._users = 0
        self._undo = contextlib.ExitStack()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                self._undo.enter_context(self._setting())
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._undo.close()


@contextlib.contextmanager
def _without_tf32() -> Iterator[None]:
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    try:
        before = matmul.allow_tf32, cudnn.allow_tf32
    except RuntimeError:  # the caller has set it the new way, and torch then refuses the old one
        with _exact(matmul, getattr(cudnn, "conv", None), getattr(cudnn, "rnn", None)):
            yield
        return
    matmul.allow_tf32 = False
    try:
        with cudnn.flags(enabled=True, allow_tf32=False):
            yield
    finally:
        matmul.allow_tf32 = before[0]


@contextlib.contextmanager
def _without_bfloat16() -> Iterator[None]:
    """With torch.set_float32_matmul_precision("medium"), some processors multiply in bfloat16."""
    matmul = getattr(torch.backends.mkldnn, "matmul", None)
    if matmul is not None:
        with _exact(matmul):
            yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextlib.contextmanager
def _exact(*owners: Any) -> Iterator[None]:
    """Float32 as it is, for those parts of torch that have been told otherwise."""
    told = [(owner, owner.fp32_precision) for owner in owners if owner is not None]
    told = [(owner, precision) for owner, precision in told if precision not in ("ieee", "none")]
    for owner, _ in told:
        owner.fp32_precision = "ieee"
    try:
        yield
    finally:
        for owner, precision in told:
            owner.fp32_precision = "none"
            if owner.fp32_precision != precision:  # else it was inherited from a wider setting
                owner.fp32_precision = precision


_no_tf32 = _Shared(_without_tf32)
_no_bfloat16 = _Shared(_without_bfloat16)
