"""Diamond-square ("plasma") fields."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from blemish.ops.groups import in_groups
from blemish.ops.transfer import to_device

# Half the range of the first level's noise is the square of this, in the reference's units.
_WIDTH = 100.0
_COARSE = 5

# Images whose small levels a GPU does at once.
_ROWS = 64


def plasma_sizes(side: int) -> list[int]:
    """The sides of the random fields that a map of this side (a power of two) takes, coarse to fine: 1, 2, 4, …"""
    return [1 << level for level in range(side.bit_length() - 1)]


def _noise(decay: Tensor, levels: int) -> Tensor:
    powers = decay[:, None] ** torch.arange(levels, dtype=torch.float64)
    return (_WIDTH / powers) ** 2


@lru_cache(maxsize=256)
def plasma_noise(decay: float, levels: int) -> NDArray[np.float32]:
    """How far new points may move at each level."""
    return _noise(torch.tensor([decay], dtype=torch.float64), levels)[0].to(torch.float32).numpy()


def plasma(wobble: Sequence[Tensor], decay: Tensor) -> Tensor:
    """A periodic diamond-square map (B, 1, side, side), each scaled to 0 … 1.

    `wobble` holds for each level (B, 3, n, n) uniform values in (−1, 1): for the centres of the squares, then for the
    diamonds on the rows and on the columns of the old points. A new point is the mean of its four neighbours plus
    w² · wobble; w starts at 100 and is divided by `decay` (B,), on the CPU, per level.
    """
    device = wobble[0].device
    noise = to_device(_noise(decay, len(wobble)), device, torch.float32)[:, :, None, None, None]
    steps = [noise[:, level] * random for level, random in enumerate(wobble)]
    field = torch.zeros((len(decay), 1, 1), device=device, dtype=torch.float32)
    if device.type != "cpu":
        # Small levels cost a GPU more to launch than to compute, and all of this is linear: one product does them.
        coarse = steps[:_COARSE]
        side = 1 << len(coarse)
        flat = torch.cat([step.flatten(1) for step in coarse], dim=1)
        field = in_groups(flat, _ROWS, partial(_product, _coarse_map(len(coarse), device))).view(-1, side, side)
        steps = steps[_COARSE:]
    for step in steps:
        field = _finer(field, step)
    low = field.amin((1, 2), keepdim=True)
    return field.sub_(low).div_(field.amax((1, 2), keepdim=True)).unsqueeze(1)


def _product(coarse_map: Tensor, rows: Tensor) -> Tensor:
    return rows @ coarse_map


def _finer(field: Tensor, step: Tensor) -> Tensor:
    """The map (B, n, n) at twice the resolution, with the noise (B, 3, n, n) of its new points."""
    below = field.roll(-1, 1)
    edges = field + below
    centres = edges.add_(edges.roll(-1, 2)).mul_(0.25).add_(step[:, 0])
    # Each diamond has two old points and two new centres as neighbours.
    diamonds = torch.stack([centres.roll(1, 1), centres.roll(1, 2)], dim=1)
    diamonds += torch.stack([field.roll(-1, 2), below], dim=1)
    diamonds += (centres + field).unsqueeze(1)
    diamonds.mul_(0.25).add_(step[:, 1:])
    parts = torch.cat([field.unsqueeze(1), diamonds, centres.unsqueeze(1)], dim=1)
    return F.pixel_shuffle(parts, 2).squeeze(1)


@lru_cache(maxsize=8)
def _coarse_map(levels: int, device: torch.device) -> Tensor:
    """The map after so many levels for each single unit of noise, (inputs, side²)."""
    sizes = [1 << level for level in range(levels)]
    inputs = sum(3 * n * n for n in sizes)
    field = torch.zeros(inputs, 1, 1, dtype=torch.float32)
    for part, n in zip(
        torch.split(torch.eye(inputs, dtype=torch.float32), [3 * n * n for n in sizes], dim=1), sizes, strict=True
    ):
        field = _finer(field, part.reshape(-1, 3, n, n))
    return field.flatten(1).to(device)
