"""Where a kernel runs, on the device of what it is given, and how the few numbers that steer it get there."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.transfer import to_device

Rest = ParamSpec("Rest")
Result = TypeVar("Result")

# Triton makes another kernel for addresses that are no multiples of so many numbers of four bytes.
_ALIGNED = 4

# Constants that stay on devices, with the arrays they were made of: while those are alive, no other has their id.
_kept: OrderedDict[tuple[int, torch.device], tuple[NDArray[Any], Tensor]] = OrderedDict()
_MOST_KEPT = 128


def on_its_device(
    function: Callable[Concatenate[Tensor, Rest], Result],
) -> Callable[Concatenate[Tensor, Rest], Result]:
    """A function whose kernels run on the device of its first tensor; Triton takes the current one."""

    @functools.wraps(function)
    def call(first: Tensor, /, *rest: Rest.args, **named: Rest.kwargs) -> Result:
        with torch.cuda.device_of(first):
            return function(first, *rest, **named)

    return call


def sent(like: Tensor, *arrays: NDArray[Any]) -> list[Tensor]:
    """Arrays on the device of a tensor, floats as float32 and whole numbers as int32; all of them in one copy."""
    parts, starts, size = [], [], 0
    for array in arrays:
        kind = np.float32 if array.dtype.kind == "f" else np.int32
        parts.append(np.ascontiguousarray(array, dtype=kind))
        starts.append(size)
        size += -(-array.size // _ALIGNED) * _ALIGNED
    both = np.empty(size, np.int32)
    for part, start in zip(parts, starts, strict=True):
        both[start : start + part.size] = part.reshape(-1).view(np.int32)
    there = to_device(torch.from_numpy(both), like.device)
    floats = there.view(torch.float32)
    return [
        (floats if part.dtype == np.float32 else there)[start : start + part.size].view(part.shape)
        for part, start in zip(parts, starts, strict=True)
    ]


def kept(like: Tensor, array: NDArray[Any]) -> Tensor:
    """An array that never changes and lives on, such as a table; on the device of a tensor, where it stays."""
    key = (id(array), like.device)
    entry = _kept.get(key)
    if entry is None:
        (there,) = sent(like, array)
        entry = _kept[key] = (array, there)
        while len(_kept) > _MOST_KEPT:
            _kept.popitem(last=False)
    return entry[1]
