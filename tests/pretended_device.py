"""A device that is none: tensors that say they are on it lie in memory, and what a real one refuses is refused.

So what runs on GPUs of any maker can be tried where there is none: that no tensor of the CPU meets one of the device,
and that none is read by NumPy. A real device may still differ in rounding and in what it implements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

DEVICE = torch.device("xpu")

_GETS_DEVICE = torch.Tensor.device.__get__
_ON_CPU = torch.Tensor.is_cpu.__get__  # type: ignore[attr-defined]
_MOVES = {"to", "cpu", "cuda", "xpu"}
_TO_NUMPY = {"numpy", "__array__"}
# They take positions or values from the CPU, as on a GPU.
_MIXES = {"__getitem__", "__setitem__", "copy_"}


class PretendedDevice(TorchFunctionMode):
    """While it is entered, `DEVICE` can be asked for."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run it in memory, and mark what comes out as the device would."""
        kwargs = kwargs or {}
        tensors = list(_tensors((args, kwargs)))
        there = any(_is_there(tensor) for tensor in tensors)
        if func == _GETS_DEVICE:
            return DEVICE if there else func(*args)
        if func == _ON_CPU:
            return not there
        name = getattr(func, "__name__", "")
        if there and name in _TO_NUMPY:
            raise TypeError(f"NumPy cannot read a tensor on {DEVICE}")
        asked = _asked_for(name, args, kwargs)
        if there and name not in _MOVES | _MIXES:
            for tensor in tensors:
                if tensor.dim() and not _is_there(tensor):
                    raise RuntimeError(f"{name}: expected all tensors on one device, but found {DEVICE} and cpu")
        plain_args, plain = _in_memory(args), _in_memory(kwargs)
        out = func(*plain_args, **plain)
        if name == "cpu" or (asked is not None and asked.type == "cpu"):
            there = False
        elif asked is not None:
            there = asked.type == DEVICE.type
        if there and any(out is tensor and not _is_there(tensor) for tensor in tensors):
            if name not in _MIXES:
                out = out.clone()  # moving makes another tensor
            else:
                return out
        if not there and name in _MOVES and any(out is tensor and _is_there(tensor) for tensor in tensors):
            out = out.clone()
        if there:
            for tensor in _tensors(out):
                tensor._is_on_the_device = True  # type: ignore[attr-defined]
        return out


def pretended(tensor: Tensor) -> Tensor:
    """A copy on the device."""
    with PretendedDevice():
        return tensor.to(DEVICE)


def _is_there(tensor: Tensor) -> bool:
    return getattr(tensor, "_is_on_the_device", False)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))


def _asked_for(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.device | None:
    """The device that a call names."""
    if kwargs.get("device") is not None:
        return torch.device(kwargs["device"])
    if name != "to":
        return None
    for value in args[1:]:
        if isinstance(value, (str, torch.device)):
            return torch.device(value)
        if isinstance(value, Tensor):
            return DEVICE if _is_there(value) else torch.device("cpu")
    return None


def _in_memory(value: Any) -> Any:
    """The same arguments with the CPU in place of the device."""
    if isinstance(value, torch.device):
        return torch.device("cpu") if value.type == DEVICE.type else value
    if isinstance(value, str) and value == DEVICE.type:
        return "cpu"
    if type(value) in (list, tuple):
        return type(value)(_in_memory(part) for part in value)
    if type(value) is dict:
        return {key: _in_memory(part) for key, part in value.items()}
    return value
