"""Fused kernels for NVIDIA GPUs, where Triton is there to compile them; everything works without them, more slowly."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
from functools import lru_cache
from types import ModuleType
from typing import Any

import torch

__all__ = ["fused", "kernels_for"]

_SWITCH = "BLEMISH_FUSED"
_DEVICES = {"cuda"}  # kinds; tests add the CPU, where Triton's interpreter runs the kernels

_log = logging.getLogger(__name__)


def kernels_for(device: torch.device) -> ModuleType | None:
    """The module of kernels for a device, or None: not a GPU, no Triton, or switched off with BLEMISH_FUSED=0."""
    kind = device.type
    if kind not in _DEVICES:
        if kind != "cpu":
            _say_plain(kind, "they are written for NVIDIA GPUs")
        return None
    return None if os.environ.get(_SWITCH) == "0" else _working(device)


def fused(family: str, device: torch.device) -> Any | None:
    """The module of that name of kernels that go from levels to levels; None where `kernels_for` gives none."""
    return None if kernels_for(device) is None else _module(family)


@lru_cache(maxsize=64)
def _module(family: str) -> ModuleType | None:
    name = f"{__name__}.{family}"
    return importlib.import_module(name) if importlib.util.find_spec(name) is not None else None


@lru_cache(maxsize=16)
def _working(device: torch.device) -> ModuleType | None:
    """Try one kernel: Triton also needs a C compiler and a card it knows, and says so only when it is used."""
    try:
        kernels = importlib.import_module(f"{__name__}.calls")
        kernels.quantised(torch.zeros(1, 1, 8, 8, device=device))
    except Exception as error:  # whatever is missing, the plain operations remain
        _say_plain(str(device), f"{type(error).__name__}: {error}".splitlines()[0])
        return None
    return kernels


@lru_cache(maxsize=16)
def _say_plain(device: str, reason: str) -> None:
    """Once for each device: nobody should have to guess why it is slow."""
    _log.warning("no fused kernels on %s (%s): plain operations give the same images, more slowly", device, reason)
