"""Poisson counts at given ranks, without rejection: the same rank gives the same count on every device."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.rng import normal_table
from blemish.ops.fused import kernels_for

# Below this mean the quantile is found by summing probabilities, above it by an expansion that is wrong by one count on
# at most 0.25 % of ranks. With 16-bit ranks no count above _LAST can occur at a smaller mean.
POISSON_SWITCH = 2.5
_LAST = 12


@lru_cache(maxsize=1)
def normal_tails() -> NDArray[np.float32]:
    """Twice the normal probability below each value of the table of normals."""
    return torch.erf(torch.from_numpy(normal_table()) * math.sqrt(0.5)).add_(1).numpy()


def poisson_quantile(rank: Tensor, mean: Tensor, *, limit: float) -> Tensor:
    """The Poisson(`mean`) count whose cumulative probability covers Φ(`rank`), as float; `rank` is a normal deviate.

    `limit` is a bound on `mean`, known without looking at it, that saves work for small means.
    """
    fused = kernels_for(mean.device)
    if fused is not None:
        counts: Tensor = fused.poisson_counts(rank, mean, POISSON_SWITCH, _LAST)
        return counts
    if limit < POISSON_SWITCH:
        return _summed(rank, mean)
    counts = _expanded(rank, mean.clamp(min=POISSON_SWITCH))
    dark = mean < POISSON_SWITCH
    if counts.device.type != "cpu":
        return torch.where(dark, _summed(rank, mean.clamp(max=POISSON_SWITCH)), counts)
    where = dark.numpy()  # on a GPU, picking out the dark values would wait for the device
    few = _summed(torch.from_numpy(rank.numpy()[where]), torch.from_numpy(mean.numpy()[where]))
    counts.numpy()[where] = few.numpy()
    return counts


def _expanded(rank: Tensor, mean: Tensor) -> Tensor:
    """The normal expansion of the inverse of the incomplete gamma function (Giles, ACM TOMS 42, 2016), one term longer.

    floor(m + √m·w + 1/3 + w²/6 − (w/36 + w³/72)/√m + (−8/405 + 7w²/810 + w⁴/270)/m + (aw + bw³ + cw⁵)/m^(3/2)),
    with a, b, c fitted by least squares to the exact inverse for means between 1 and 20.
    """
    root = mean.sqrt()
    square = rank * rank
    even = square.mul(1 / 270).add_(7 / 810).mul_(square).sub_(8 / 405).div_(mean)
    odd = square.mul(-0.000316).sub_(0.006578).mul_(square).add_(0.020312).div_(mean)
    odd.add_(square, alpha=-1 / 72).sub_(1 / 36).div_(root).add_(root).mul_(rank)
    return even.add_(odd).add_(square, alpha=1 / 6).add_(mean).add_(1 / 3).floor_().clamp_(min=0)


def _summed(rank: Tensor, mean: Tensor) -> Tensor:
    """Count how many partial sums of meanᵏ/k! lie below Φ(rank)·exp(mean)."""
    target = torch.erf(rank * math.sqrt(0.5)).add_(1).mul_(mean.exp()).mul_(0.5)
    total = torch.ones_like(mean)
    power = torch.ones_like(mean)
    count = torch.zeros_like(mean, dtype=torch.int8)
    for k in range(1, _LAST + 1):
        if mean.device.type == "cpu":
            count.numpy()[...] += target.numpy() > total.numpy()  # NumPy compares four times as fast
        else:
            count.add_(target > total)
        total.add_(power.mul_(mean), alpha=1 / math.factorial(k))
    return count.to(torch.float32)
