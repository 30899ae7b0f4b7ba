"""Anti-aliased lines as Zingl's version of Bresenham's algorithm draws them, without walking along them.

Walking from one end, k steps along the longer direction lead to m = ⌊(2 k + 1) · short / (2 · long)⌋ steps along the
shorter one, where long and short are the whole lengths. The pixel there, the next one aside, and where m has just grown
the one it left, are painted with 1 − their distance from the line, if that is positive.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class LinePixels(NamedTuple):
    """Pixels of a line in each image: places in the flat image, int64, and opacities, float64; both (B, n).

    No pixel comes twice. The place behind the last pixel stands for none.
    """

    places: Tensor
    opacity: Tensor


def line_pixels(start: Tensor, end: Tensor, height: int, width: int, *, longest: int) -> LinePixels:
    """The pixels of a line from `start` to `end`, (B, 2) int64 as (row, column) on the device, none beyond `longest`.

    The ends may lie outside the image.
    """
    extent = (end - start).abs()
    direction = torch.where(start < end, 1, -1)
    upright = extent[:, 0] > extent[:, 1]
    long, short = extent.amax(1, keepdim=True), extent.amin(1, keepdim=True)
    length = extent.square().sum(1, keepdim=True).to(torch.float64).sqrt_().clamp_(min=1)
    step = torch.arange(longest + 1, device=start.device)
    twice = (2 * long).clamp_(min=1)
    aside = (2 * step + 1) * short // twice
    grown = aside > (2 * step - 1).clamp_(min=0) * short // twice
    grown &= step > 0
    on_line = step <= long
    # The pixel on the way is painted whatever its distance, which is below 1; the last step goes no further aside.
    parts = [(aside, on_line), (aside + 1, on_line & (step < long)), (aside - 1, on_line & grown)]
    places, opacity = [], []
    for across, painted in parts:
        share = 1 - (across * long - step * short).abs() / length
        along = step.expand_as(across)
        row, column = (
            start[:, i, None] + direction[:, i, None] * torch.where(upright[:, None] == (i == 0), along, across)
            for i in (0, 1)
        )
        painted = painted & (share > 0) & (row >= 0) & (row < height) & (column >= 0) & (column < width)
        places.append(torch.where(painted, row * width + column, height * width))
        opacity.append(share)
    return LinePixels(torch.cat(places, dim=1), torch.cat(opacity, dim=1))
