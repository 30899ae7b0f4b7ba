"""The in-place neighbour copying of glass blur, without its sequential loop over pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.ops.transfer import to_device

# A chain of copies goes on with probability below one half, so that 2⁶ links are never exceeded: the chance is 2⁻⁶⁴ per
# pixel. Each doubling squares the links already resolved.
_DOUBLINGS = 6


def shuffle_sources(dy: Tensor, dx: Tensor, max_delta: Tensor) -> Tensor:
    """For each pixel, the flat index of the pixel its final value comes from; (B, H·W) int64.

    Pass p visits rows H − d down to d + 1 and in each the columns W − d down to d + 1, and copies into the visited
    pixel the value that stands at (y + dy, x + dx) at that moment. That value is the source's *new* one if the source
    was visited before, so the pixel points on to the source's own source. Chains of such pointers are followed for all
    pixels at once.
    """
    batch, passes, height, width = dy.shape
    rows, columns = torch.arange(height, device=dy.device)[:, None], torch.arange(width, device=dy.device)
    delta = to_device(max_delta, dy.device, torch.int64).view(-1, 1, 1)
    inside = (rows > delta) & (rows <= height - delta) & (columns > delta) & (columns <= width - delta)
    # One index space for the whole batch.
    here: Any = torch.arange(batch * height * width, device=dy.device)
    visited: Any = inside.flatten()
    ends = here + len(here)
    on_cpu = dy.device.type == "cpu"
    if on_cpu:  # NumPy converts and picks out three times as fast as torch
        here, visited = here.numpy(), visited.numpy()
    result = here
    for step in range(passes):
        down: Any = dy[:, step].flatten()
        right: Any = dx[:, step].flatten()
        down = down.numpy().astype(np.int64) if on_cpu else down.to(torch.int64)
        moved = (down * width + (right.numpy() if on_cpu else right)) * visited
        source = here + moved
        # The pass runs backwards, so a later index means an earlier visit; a pixel never visited points to itself.
        chained = moved > 0
        result = result[_walk(source, chained) if on_cpu else _doubled(source, chained, ends)]
    return torch.as_tensor(result).view(batch, -1) % (height * width)


def _doubled(source: Tensor, chained: Tensor, ends: Tensor) -> Tensor:
    """Follow all chains by pointer doubling, without asking the device which are finished."""
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
