"""Where a kernel runs: on the device of what it is given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor

__all__ = ["on_its_device"]

Rest = ParamSpec("Rest")
Result = TypeVar("Result")


def on_its_device(
    function: Callable[Concatenate[Tensor, Rest], Result],
) -> Callable[Concatenate[Tensor, Rest], Result]:
    """A function whose kernels run on the device of its first tensor; Triton takes the current one."""

    @functools.wraps(function)
    def call(first: Tensor, /, *rest: Rest.args, **named: Rest.kwargs) -> Result:
        with torch.cuda.device_of(first):
            return function(first, *rest, **named)

    return call
