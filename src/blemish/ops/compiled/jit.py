"""How kernels are compiled: no reordering of sums, no fused operation but those asked for, kept on disk."""

from __future__ import annotations

import hashlib
import inspect
import logging
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.core.caching import FunctionCache
from numba.extending import intrinsic

_log = logging.getLogger(__name__)

took: list[float] = []
"""The seconds that this process spent on each kernel that it compiled."""

_unkept: list[str] = []
"""Why kernels could not be kept on disk; the first time it is said."""


@lru_cache(maxsize=1)
def _sources() -> str:
    """A digest of all kernels. numba looks at the file of a kernel alone, but it is made of functions of others too."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _say_that_nothing_is_kept(why: str) -> None:
    if not _unkept:
        _log.warning("compiled kernels are not kept, so that every process compiles them anew: %s", why)
    _unkept.append(why)


class _Cache(FunctionCache):
    """What numba keeps on disk of a kernel. Where it cannot be read or written, the kernel is compiled without."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = _sources()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept for these types of arguments, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a file that is damaged, or that is not ours to read
            self._begin_anew()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for these types of arguments."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # a full disk, or a folder that became read-only
            self._give_up(error)

    def _begin_anew(self) -> None:
        try:
            self.flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self.disable()
        _say_that_nothing_is_kept(f"{self.cache_path}: {error}")


class Kernel:
    """A function that is compiled on its first call, or read from where numba keeps what it has compiled."""

    __slots__ = ("_dispatcher", "_name", "_used", "axes")

    def __init__(self, function: Callable[..., Any], axes: tuple[int | None, ...] | None = None) -> None:
        self.axes = axes
        # Without the interpreter's lock, so that threads of ours can share a batch.
        self._dispatcher = numba.njit(function, nogil=True, error_model="numpy")
        try:
            self._dispatcher._cache = _Cache(function)
        except (OSError, RuntimeError) as error:  # numba knows no folder that it may write to
            _say_that_nothing_is_kept(str(error))
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


def shareable(*whole: str) -> Callable[[Callable[..., Any]], Kernel]:
    """A kernel whose images several threads can share; see `blemish.ops.compiled.threads.Shared`.

    Its arguments have a row for each image, or ``keys`` a column, their last axis; but those that are named here.
    """

    def made(function: Callable[..., Any]) -> Kernel:
        names = tuple(inspect.signature(function).parameters)
        assert set(whole) <= set(names), f"{function.__name__} has no arguments {set(whole) - set(names)}"
        return Kernel(function, tuple(None if name in whole else -1 if name == "keys" else 0 for name in names))

    return made


part = numba.njit(error_model="numpy")
"""A function that kernels call."""


@intrinsic
def fma(typing_context, first, second, third):
    """``first · second + third`` of float32, rounded once."""
    signature = types.float32(types.float32, types.float32, types.float32)

    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return signature, generate
