"""How kernels are compiled: no reordering of sums, no fused operation but those asked for, kept on disk."""

from __future__ import annotations

import glob
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
from numba.core.caching import FunctionCache, IndexDataCacheFile
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
        remedy = "name a folder for them by NUMBA_CACHE_DIR, and let DataLoader workers stay (persistent_workers=True)"
        _log.warning("compiled kernels are not kept, so that every process compiles them anew: %s; %s", why, remedy)
    _unkept.append(why)


class _Files(IndexDataCacheFile):
    """A file for each kind of arguments and processor of a kernel, named by them and by the sources.

    numba numbers files and keeps an index of them. Two processes that compile at the same time may then both take the
    next number, and the index may lead to the code of the other one: for other arguments, or another processor.
    """

    def __init__(self, folder: str, base: str) -> None:
        stamp = hashlib.sha256(f"{numba.__version__} {_sources()}".encode()).hexdigest()[:12]
        super().__init__(cache_path=folder, filename_base=base, source_stamp=stamp)
        self._base = base

    def save(self, key: Any, data: Any) -> None:
        """Keep code, and none that was made of other sources."""
        for path in Path(self._cache_path).glob(f"{glob.escape(self._base)}.*"):
            if not path.name.startswith(f"{self._base}.{self._source_stamp}"):
                path.unlink(missing_ok=True)
        self._save_data(self._named(key), data)

    def load(self, key: Any) -> Any:
        """What is kept for a key, or None."""
        try:
            return self._load_data(self._named(key))
        except FileNotFoundError:
            return None

    def _named(self, key: Any) -> str:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:24]
        return f"{self._base}.{self._source_stamp}-{digest}.nbc"


class _Cache(FunctionCache):
    """What numba keeps on disk of a kernel. Where it cannot be read or written, the kernel is compiled without."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What is kept for these types of arguments, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a file that is damaged, or that is not ours to read: it is compiled and written anew
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for these types of arguments."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # a full disk, or a folder that became read-only
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
