"""Fused kernels for NVIDIA GPUs, where Triton is there to compile them; everything works without them, more slowly."""

from __future__ import annotations

import importlib
import os
from functools import lru_cache
from types import ModuleType

import torch

__all__ = ["kernels_for"]

_SWITCH = "BLEMISH_FUSED"
_DEVICES = {"cuda"}  # kinds; tests add the CPU, where Triton's interpreter runs the kernels


def kernels_for(device: torch.device) -> ModuleType | None:
    """The module of kernels for a device, or None: not a GPU, no Triton, or switched off with BLEMISH_FUSED=0."""
    if device.type not in _DEVICES or os.environ.get(_SWITCH) == "0":
        return None
    return _working(device)


@lru_cache(maxsize=16)
def _working(device: torch.device) -> ModuleType | None:
    """Try one kernel: Triton also needs a C compiler and a card it knows, and says so only when it is used."""
    try:
        kernels = importlib.import_module("blemish.ops.fused.calls")
        kernels.quantised(torch.zeros(1, 1, 8, 8, device=device))
    except Exception:  # whatever is missing, the plain operations remain
        return None
    return kernels
