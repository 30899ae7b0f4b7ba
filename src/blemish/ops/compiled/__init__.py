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


@lru_cache(maxsize=1)
def _are_there() -> bool:
    """Whether there are any; if not, it is said why, once."""
    reason = _why_not()
    if reason is not None:
        _log.info("no compiled kernels (%s): plain operations give the same images, more slowly", reason)
    return reason is None


def _why_not() -> str | None:
    capability = torch.backends.cpu.get_cpu_capability()
    if capability not in ("AVX2", "AVX512"):
        # Where torch has no fused multiply-add, the plain operations round otherwise.
        return f"they are written for processors with AVX2, and torch uses {capability}"
    try:
        numba = importlib.import_module("numba")
    except Exception as error:  # whatever is missing or broken in it, the plain operations remain
        return f"numba: {error}; it comes with blemish[full]"
    return "NUMBA_DISABLE_JIT is set" if numba.config.DISABLE_JIT else None


@lru_cache(maxsize=64)
def _module(family: str) -> Any | None:
    if not _are_there():
        return None
    name = f"{__name__}.{family}"
    return importlib.import_module(name) if importlib.util.find_spec(name) is not None else None
