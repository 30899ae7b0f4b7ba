"""Between grey levels and floats, as `blemish.ops.levels` and `blemish.corruptions.base.quantise` do it."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import fma, part

_UNIT = np.float32(1 / 255)
_WHOLE = np.float32(255)
_ZERO = np.float32(0)
_SLACK = np.float32(2.0**-12)


@part
def unit(level):
    """A level as float32 in [0, 1]."""
    return np.float32(level) * _UNIT


@part
def level(value):
    """The uint8 level of a float32 by truncation."""
    scaled = fma(value, _WHOLE, _SLACK)
    scaled = scaled if scaled > _ZERO else _ZERO
    scaled = scaled if scaled < _WHOLE else _WHOLE
    return np.uint8(np.int32(scaled))
