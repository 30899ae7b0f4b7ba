"""Pixelating levels, means of boxes, repeated, with the bits of `blemish.ops.compiled.boxes`."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.fused.levels import EXACT, here
from blemish.ops.fused.on_device import kept, on_its_device

_LANES = 512


@triton.jit
def _pixelate_kernel(
    levels, out, columns, column_weights, rows, row_weights, wide, tall,
    size, width, small_width, small_height, parts, across: tl.constexpr, down: tl.constexpr, lanes: tl.constexpr,
):  # fmt: skip
    plane, pixel, inside = here(size, parts, lanes)
    y = pixel // width
    column = tl.load(wide + pixel - y * width, inside, other=0)
    row = tl.load(tall + y, inside, other=0)
    levels += plane.to(tl.int64) * size
    total = tl.zeros((lanes,), tl.float32)
    for i in tl.static_range(down):
        line = levels + tl.load(rows + i * small_height + row, inside, other=0) * width
        mean = tl.zeros((lanes,), tl.float32)
        for j in tl.static_range(across):
            source = tl.load(columns + j * small_width + column, inside, other=0)
            share = tl.load(column_weights + j * small_width + column, inside, other=0.0)
            mean = tl.fma(tl.load(line + source, inside, other=0).to(tl.float32), share, mean)
        # Halves go up, float noise or not.
        mean = tl.floor(mean + 0.500244140625)
        total = tl.fma(mean, tl.load(row_weights + i * small_height + row, inside, other=0.0), total)
    tl.store(
        out + plane.to(tl.int64) * size + pixel, tl.floor(total + 0.500244140625).to(tl.int32).to(tl.uint8), inside
    )


@on_its_device
def pixelate(
    levels: Tensor,
    out: Tensor,
    columns: NDArray[Any],
    column_weights: NDArray[Any],
    rows: NDArray[Any],
    row_weights: NDArray[Any],
    wide: NDArray[Any],
    tall: NDArray[Any],
) -> None:
    """Shrink (N, H, W) uint8 by taps (taps, width) and (taps, height), columns first, and repeat pixels.

    ``wide`` and ``tall`` say which small column and row stands at each place of the result.
    """
    count, height, width = levels.shape
    parts = triton.cdiv(height * width, _LANES)
    places = [kept(levels, array) for array in (columns, column_weights, rows, row_weights, wide, tall)]
    shape = (height * width, width, columns.shape[1], rows.shape[1], parts)
    _pixelate_kernel[(count * parts,)](
        levels, out, *places, *shape, across=len(columns), down=len(rows), lanes=_LANES, **EXACT
    )
