"""The in-place neighbour copying of glass blur, without its sequential loop."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.transfer import send

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
    batch, _, height, width = dy.shape
    count = height * width
    rows, columns = torch.arange(height, device=dy.device)[:, None], torch.arange(width, device=dy.device)
    delta = send(max_delta, dy.device, torch.int64).view(-1, 1, 1)
    inside = (rows > delta) & (rows <= height - delta) & (columns > delta) & (columns <= width - delta)
    offset = (dy.to(torch.int64) * width).add_(dx).mul_(inside[:, None]).transpose(0, 1).flatten(1)
    # One index space for the whole batch. On the CPU in NumPy, which indexes three times as fast as torch.
    on_cpu = dy.device.type == "cpu"
    places = torch.arange(batch * count, device=dy.device)
    here, moves, visited = (v.numpy() if on_cpu else v for v in (places, offset, inside.flatten()))
    ends = places + len(places)
    result = here
    for moved in moves:
        source = here + moved
        # The pass runs backwards, so a later index means an earlier visit, if it is visited at all.
        chained = (moved > 0) & visited[source]
        result = result[_walk(source, chained) if on_cpu else _doubled(source, chained, ends)]
    return torch.as_tensor(result).view(batch, count) % count


def _doubled(source: Tensor, chained: Tensor, ends: Tensor) -> Tensor:
    """Follow all chains at once by pointer doubling."""
    # The second half of the table holds the old values, where chains end.
    pointer = torch.cat([torch.where(chained, source, source + len(ends)), ends])
    for _ in range(_DOUBLINGS):
        pointer = pointer.index_select(0, pointer)
    return pointer[: len(ends)] - len(ends)


def _walk(source: NDArray[np.int64], chained: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Follow the chains link by link: fewer than half stay open each time, which on a CPU beats doubling them all."""
    final: NDArray[np.int64] = source.copy()
    chains = np.flatnonzero(chained)
    at = source[chains]
    while len(chains):
        still = chained[at]
        at = source[at]
        final[chains] = at
        chains, at = chains[still], at[still]
    return final
