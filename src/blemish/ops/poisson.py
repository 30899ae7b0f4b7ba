"""Poisson counts at given ranks, without rejection: the same rank gives the same count on every device."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

__all__ = ["poisson_quantile"]

# Below this mean the quantile is found by summing probabilities; above it by the expansion, which is then wrong by one
# count on at most 0.16 % of ranks. With 16-bit ranks no count above _LAST can occur at a smaller mean.
_SWITCH = 4.0
_LAST = 15


def poisson_quantile(rank: Tensor, mean: Tensor, *, limit: float) -> Tensor:
    """The Poisson(`mean`) count whose cumulative probability covers Φ(`rank`), as float; `rank` is a normal deviate.

    `limit` is a bound on `mean`, known without looking at it, that saves work for small means.
    """
    if limit < _SWITCH:
        return _summed(rank, mean)
    counts = _expanded(rank, mean.clamp(min=_SWITCH))
    dark = mean < _SWITCH
    if counts.device.type != "cpu":
        return torch.where(dark, _summed(rank, mean.clamp(max=_SWITCH)), counts)
    where = dark.numpy()  # on a GPU, picking out the dark values would wait for the device
    few = _summed(torch.from_numpy(rank.numpy()[where]), torch.from_numpy(mean.numpy()[where]))
    counts.numpy()[where] = few.numpy()
    return counts


def _expanded(rank: Tensor, mean: Tensor) -> Tensor:
    """The normal expansion of the inverse of the incomplete gamma function, to order 1/mean (Giles, ACM TOMS 42, 2016).

    floor(m + √m·w + 1/3 + w²/6 − (w/36 + w³/72)/√m + (−8/405 + 7w²/810 + w⁴/270)/m)
    """
    root = mean.sqrt()
    square = rank * rank
    # Grouped by powers of w/√m, so that each line is one pass over the data.
    tail = square.mul(1 / 270).add_(7 / 810).mul_(square).sub_(8 / 405).div_(mean)
    odd = square.mul(-1 / 72).sub_(1 / 36).div_(root).add_(root).mul_(rank)
    return tail.add_(odd).add_(square, alpha=1 / 6).add_(mean).add_(1 / 3).floor_().clamp_(min=0)


def _summed(rank: Tensor, mean: Tensor) -> Tensor:
    """Count how many partial sums of meanᵏ/k! lie below Φ(rank)·exp(mean)."""
    target: Any = torch.erf(rank * math.sqrt(0.5)).add_(1).mul_(mean.exp()).mul_(0.5)
    total: Any = torch.ones_like(mean)
    power: Any = torch.ones_like(mean)
    count: Any = torch.zeros_like(mean, dtype=torch.int8)
    step: Any = mean
    if mean.device.type == "cpu":  # NumPy compares four times as fast
        target, total, power, count, step = (v.numpy() for v in (target, total, power, count, step))
    for k in range(_LAST):
        count += target > total
        power *= step
        total += power * (1 / math.factorial(k + 1))
    return torch.as_tensor(count).to(torch.float32)
