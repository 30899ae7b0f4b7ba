"""Compiled kernels for images on a CPU, where numba is there to compile them; everything works without, more slowly.

A kernel gives the very bits of the plain operations beside it. These use torch, which rounds a product and a sum once
(a fused multiply-add) in `addcmul`, `add` with `alpha` and `lerp`, and twice elsewhere; so do the kernels.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
from functools import lru_cache
from typing import Any

import torch

__all__ = ["compiled"]

_SWITCH = "BLEMISH_COMPILED"

_log = logging.getLogger(__name__)


def compiled(family: str, *, worthwhile: bool = True) -> Any | None:
    """The module of kernels of that name, or None: no numba, another processor, or switched off by BLEMISH_COMPILED=0.

    Importing it compiles nothing: a kernel is compiled when it is first called on a machine, and kept for later.
    There are none for some kinds of work that a GPU has kernels for. For a little work that is not worthwhile, numba is
    used if it has been imported, but is not imported.
    """
    if os.environ.get(_SWITCH) == "0" or not (worthwhile or "numba" in sys.modules):
        return None
    return _module(family)


@lru_cache(maxsize=64)
def _module(family: str) -> Any | None:
    # Where torch has no fused multiply-add, the plain operations round otherwise.
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        return None
    try:
        importlib.import_module("numba")
    except Exception as error:  # whatever is missing or broken in it, the plain operations remain
        _log.debug("no compiled kernels: %s", error)
        return None
    name = f"{__name__}.{family}"
    return importlib.import_module(name) if importlib.util.find_spec(name) is not None else None
