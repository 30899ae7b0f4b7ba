"""How kernels are compiled: no reordering of sums, no fused operation but those asked for, kept on disk."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic

__all__ = ["Kernel", "fma", "kernel", "part", "took"]

_log = logging.getLogger(__name__)

took: list[float] = []
"""The seconds that this process spent on each kernel that it compiled."""


@lru_cache(maxsize=1)
def _sources() -> str:
    """A digest of all kernels. numba looks at the file of a kernel alone, but it is made of functions of others too."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Kernel:
    """A function that is compiled on its first call, or read from where numba keeps what it has compiled."""

    __slots__ = ("_dispatcher", "_name", "_used")

    def __init__(self, function: Callable[..., Any]) -> None:
        # Without the interpreter's lock, so that threads of ours can share a batch.
        self._dispatcher = numba.njit(function, nogil=True, error_model="numpy")
        self._dispatcher.enable_caching()
        self._dispatcher._cache._cache_file._source_stamp = _sources()
        self._name = function.__name__
        self._used = False

    def __call__(self, *arguments: Any) -> Any:
        """Call it; the first time, say how long compiling took."""
        if self._used:
            return self._dispatcher(*arguments)
        start = time.perf_counter()
        result = self._dispatcher(*arguments)
        self._used = True
        if self._dispatcher.stats.cache_misses:
            took.append(time.perf_counter() - start)
            _log.info("compiled %s for this processor in %.1f s", self._name, took[-1])
        return result


def kernel(function: Callable[..., Any]) -> Kernel:
    """A kernel that Python calls."""
    return Kernel(function)


part = numba.njit(error_model="numpy")
"""A function that kernels call."""


@intrinsic
def fma(typing_context, first, second, third):
    """``first · second + third`` of float32, rounded once."""
    signature = types.float32(types.float32, types.float32, types.float32)

    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return signature, generate
