"""Draws within ranges, and the rounding of candidates that are geometric."""

from __future__ import annotations

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.corruptions.severity import Params
from blemish.corruptions.syn2nat.published import HALF_LEVEL, span


def between(params: Params, rng: CounterRng, name: str) -> Tensor:
    """A value per image, uniform between the parameters `name_low` and `name_high`; (B,) float64 on the CPU."""
    rank = rng.on_cpu().uniforms(name, 1)[:, 0].to(torch.float64)
    return span(rank, params[f"{name}_low"], params[f"{name}_high"])


def symmetric(rng: CounterRng, name: str, *shape: int) -> Tensor:
    """Float64 in (−1, 1) on the CPU."""
    return rng.on_cpu().uniforms(name, *shape).to(torch.float64) * 2 - 1


def rounded(images: Tensor) -> Tensor:
    """So much lighter that truncation rounds to the nearest level; overwrites its input."""
    return images.add_(HALF_LEVEL)
