"""Between grey levels and floats, as `blemish.ops.compiled.levels` does it, and pixels by their number.

Kernels that promise the bits of the compiled ones are launched with `EXACT`: the compiler may then not make one
operation of a product and a sum, and they ask for that (`tl.fma`) where torch on a CPU does so.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

EXACT: dict[str, Any] = {"enable_fp_fusion": False}


@triton.jit
def unit(level):
    """A level as float32 in [0, 1]."""
    return level.to(tl.float32) * 0.00392156862745098


@triton.jit
def level(value):
    """The uint8 level of a float32 by truncation."""
    scaled = tl.fma(value, 255.0, 0.000244140625)
    # Written so that a value that is not a number becomes 0, as it does in the plain operations.
    scaled = tl.where(scaled > 0.0, tl.minimum(scaled, 255.0), 0.0)
    return scaled.to(tl.int32).to(tl.uint8)


@triton.jit
def absolute(value):
    """Its distance from 0; Triton's interpreter has no other for float32."""
    return tl.maximum(value, -value)


@triton.jit
def luminance(red, green, blue):
    """ITU-R BT.601 luminance, as `blemish.ops.colour` sums it up."""
    return tl.fma(blue, 0.114, tl.fma(green, 0.587, red * 0.299))


@triton.jit
def here(size, parts, lanes: tl.constexpr):
    """The number of this program's image, its pixels, and which of them there are."""
    image = tl.program_id(0) // parts
    pixel = (tl.program_id(0) - image * parts) * lanes + tl.arange(0, lanes)
    return image, pixel, pixel < size
