"""Ragged round blots of ink: smooth noise above a threshold that rises towards the rim."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from blemish.core.rng import CounterRng, as_ids
from blemish.ops.cache import cached
from blemish.ops.raster import PixelTable, pixel_table

BLOTS = 10
"""How many there are of each size."""

# Shares of the square that blots cover, between which they are spread.
_LEAST, _MOST = 0.48, 0.76
_ROUGH = 0.55


def blot_masks(side: int) -> NDArray[np.bool_]:
    """All blots at a side in pixels, (N, side, side)."""
    rng = CounterRng(0, as_ids(range(BLOTS)), "blots")
    coarse, fine = (
        F.interpolate(rng.uniforms(f"{points} points", 1, points, points).double(), (side, side), mode="bilinear")[:, 0]
        for points in (5, 12)
    )
    centre = (torch.arange(side, dtype=torch.float64) + 0.5) * (2 / side) - 1
    distance = (centre[:, None] ** 2 + centre**2).sqrt()
    height = (1 - distance + _ROUGH * (coarse - 0.5) + 0.5 * _ROUGH * (fine - 0.5)).flatten(1)
    share = _LEAST + (_MOST - _LEAST) * torch.arange(BLOTS, dtype=torch.float32) / (BLOTS - 1)
    covered = (share * side * side).round().clamp(min=1).to(torch.int64)
    least = height.sort(dim=1, descending=True).values.gather(1, covered[:, None] - 1)
    masks: NDArray[np.bool_] = (height >= least).view(-1, side, side).numpy()
    return masks


@cached(mebibytes=16)
def blot_pixels(side: int, device: str) -> PixelTable:
    """The pixels of all blots, from their first row and column on."""
    return pixel_table([(mask, 0) for mask in blot_masks(side)], torch.device(device))
