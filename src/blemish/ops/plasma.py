"""Diamond-square ("plasma") fields."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["plasma", "plasma_shapes"]


def plasma_shapes(side: int) -> list[tuple[int, int]]:
    """The sizes of the random fields a map of this side (a power of two) takes: three of each size, coarse to fine."""
    sizes = []
    cells = 1
    while cells < side:
        sizes += [(cells, cells)] * 3
        cells *= 2
    return sizes


def plasma(wobble: Sequence[Tensor], decay: Tensor) -> Tensor:
    """A periodic diamond-square map (B, 1, side, side), each scaled to 0 … 1.

    `wobble` holds, level by level, uniform values in (−1, 1) for the centres of the squares and the two sets of
    diamonds. A new point is the mean of its four neighbours plus w² · wobble; w starts at 100 and is divided by
    `decay` (B, 1, 1) per level.
    """
    field = torch.zeros((len(decay), 1, 1), device=decay.device)
    width = torch.full_like(decay, 100.0)
    for centre, left, top in zip(wobble[0::3], wobble[1::3], wobble[2::3], strict=True):
        noise = width * width
        right = torch.roll(field, -1, 1)
        squares = (field + right + torch.roll(field + right, -1, 2)).mul_(0.25).add_(noise * centre)
        # Each diamond has two old corners and two new centres as neighbours.
        across = squares + torch.roll(squares, 1, 1)
        down = squares + torch.roll(squares, 1, 2)
        above = (across + field + torch.roll(field, -1, 2)).mul_(0.25).add_(noise * left)
        beside = (down + field + right).mul_(0.25).add_(noise * top)
        size = field.shape[1]
        finer = field.new_empty((len(field), size, 2, size, 2))
        finer[:, :, 0, :, 0], finer[:, :, 1, :, 1] = field, squares
        finer[:, :, 0, :, 1], finer[:, :, 1, :, 0] = above, beside
        field = finer.view(-1, 2 * size, 2 * size)
        width = width / decay
    low = field.amin((1, 2), keepdim=True)
    return field.sub_(low).div_(field.amax((1, 2), keepdim=True)).unsqueeze(1)
