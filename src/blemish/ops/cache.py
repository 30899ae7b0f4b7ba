"""Results kept for the next call: bounded by their bytes, because tensors grow with the images."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Generic, ParamSpec, TypeVar

from torch import Tensor

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_MEBIBYTE = 2**20

# What an entry costs besides its tensors, so that small ones are not kept without end either.
_OVERHEAD = 2**10


def _bytes(value: object) -> int:
    """What the tensors in a result occupy."""
    if isinstance(value, Tensor):
        return value.nbytes
    if is_dataclass(value):
        return sum(_bytes(getattr(value, field.name)) for field in fields(value))
    return sum(map(_bytes, value)) if isinstance(value, tuple | list) else 0


class Cached(Generic[_Arguments, _Result]):
    """A function whose latest results are kept; see `cached`. Threads may share it."""

    def __init__(self, function: Callable[_Arguments, _Result], room: int) -> None:
        wraps(function)(self)
        self._function = function
        self._room = room
        self._entries: OrderedDict[Hashable, tuple[_Result, int]] = OrderedDict()
        self._lock = threading.Lock()
        self.bytes = 0

    def __call__(self, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        """The kept result for equal arguments, or a new one."""
        key = (arguments, tuple(sorted(named.items())))
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][0]
        result = self._function(*arguments, **named)
        with self._lock:
            if key not in self._entries:  # another thread may have been quicker
                size = _bytes(result) + _OVERHEAD
                self._entries[key] = (result, size)
                self.bytes += size
            # The latest stays, however large: the next batch needs it again.
            while self.bytes > self._room and len(self._entries) > 1:
                _, (_, size) = self._entries.popitem(last=False)
                self.bytes -= size
        return result

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self.bytes = 0


def cached(*, mebibytes: int = 64) -> Callable[[Callable[_Arguments, _Result]], Cached[_Arguments, _Result]]:
    """Keep a function's results, in all so many mebibytes of tensors; the ones used longest ago go first.

    For functions of hashable arguments whose results nobody changes.
    """
    return lambda function: Cached(function, mebibytes * _MEBIBYTE)
