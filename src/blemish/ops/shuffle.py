"""The in-place neighbour copying of glass blur, without its sequential loop."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["shuffle_sources"]

# A chain of copies goes on with probability below one half, so 2⁶ links are never exceeded in practice: the chance is
# 2⁻⁶⁴ per pixel. Each round of doubling squares the links already resolved.
_DOUBLINGS = 6


def shuffle_sources(dy: Tensor, dx: Tensor, max_delta: Tensor) -> Tensor:
    """For each pixel, the flat index of the pixel its final value comes from; (B, H·W) int64.

    Pass p visits rows H − d down to d + 1 and in each the columns W − d down to d + 1, and copies into the visited
    pixel the value that stands at (y + dy, x + dx) at that moment. That value is the source's *new* one if the source
    was visited before, so the pixel points on to the source's own source. Such chains are resolved by pointer doubling.
    """
    batch, passes, height, width = dy.shape
    device = dy.device
    y = torch.arange(height, device=device)[:, None]
    x = torch.arange(width, device=device)
    delta = max_delta.to(device, torch.int64).view(-1, 1, 1)
    visited = (y > delta) & (y <= height - delta) & (x > delta) & (x <= width - delta)
    here = (y * width + x).expand(batch, -1, -1)
    result = here.flatten(1)
    offset = dy * width + dx
    count = height * width
    for step in range(passes):
        source = torch.where(visited, here + offset[:, step], here)
        # The pass runs backwards, so a later flat index means an earlier visit, if it is visited at all.
        chained = (source > here) & visited.flatten(1).gather(1, source.flatten(1)).view_as(source)
        # Second half of the table: pixels with their old values, where chains end.
        pointer = torch.where(chained, source, source + count).flatten(1)
        ends = torch.arange(count, 2 * count, device=device).expand(batch, -1)
        pointer = torch.cat([pointer, ends], dim=1)
        for _ in range(_DOUBLINGS):
            pointer = pointer.gather(1, pointer)
        result = result.gather(1, pointer[:, :count] - count)
    return result
