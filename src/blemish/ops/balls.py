"""Uniform points in L_p balls, of any number of dimensions."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.ops.compiled import compiled
from blemish.ops.fused import fused

Norm = Literal["l1", "l2", "linf"]


def in_ball(rng: CounterRng, norm: Norm, *shape: int, name: str = "ball") -> Tensor:
    """One point per image, float32 of this shape, uniform in the unit ball of the norm.

    L_∞: independent uniforms. L_2: a normal direction at radius u^(1/d). L_1: exponential spacings with random signs,
    the first d of d + 1 exponentials over the sum of all.
    """
    if norm == "linf":
        return rng.uniforms(name, *shape).mul_(2).sub_(1)
    dimensions = math.prod(shape)
    if norm == "l2":
        direction = rng.normals(name, dimensions)
        radius = rng.uniforms(f"{name} radius", 1).to(torch.float64).pow(1 / dimensions)
        length = direction.to(torch.float64).square().sum(1, keepdim=True).sqrt()
        return (direction * (radius / length).to(torch.float32)).view(-1, *shape)
    signed = rng.uniforms(name, dimensions).mul_(2).sub_(1)
    spacing = signed.abs().log_().neg_()  # the size of a symmetric uniform is uniform, and its sign independent
    last = rng.uniforms(f"{name} last", 1).log_().neg_()
    total = spacing.to(torch.float64).sum(1, keepdim=True) + last
    return spacing.copysign_(signed).div_(total.to(torch.float32)).view(-1, *shape)


def exact_k_mask(rng: CounterRng, count: Tensor, *shape: int, name: str = "few") -> Tensor:
    """A bool mask per image with exactly count[b] places set, all choices equally likely; `count` lives on the CPU."""
    size = math.prod(shape)
    kernels = compiled("selection") if rng.device.type == "cpu" else None
    if kernels is not None:
        words = rng.raw(name, size).contiguous().numpy()
        return torch.from_numpy(kernels.smallest(words, count.to(torch.int64).numpy())).view(-1, *shape)
    there = fused("selection", rng.device)
    if there is not None:
        chosen: Tensor = there.smallest(rng.raw(name, size), count.to(torch.int64).numpy())
        return chosen.view(-1, *shape)
    # Distinct keys, so that exactly so many lie below the bound: 32 random bits, then the place.
    keys = (rng.raw(name, size).to(torch.int64) << 31) + torch.arange(size, device=rng.device)
    last_kept = (count.to(torch.int64) - 1).clamp(min=0)
    if keys.device.type == "cpu":  # one selection per image costs a tenth of a sort
        bounds = [np.partition(row, index)[index] for row, index in zip(keys.numpy(), last_kept.tolist(), strict=True)]
        bound = torch.tensor(bounds, dtype=torch.int64)[:, None]
    else:
        bound = keys.sort(1).values.gather(1, last_kept.to(keys.device, non_blocking=True)[:, None])
    some = (count > 0).to(keys.device, non_blocking=True)[:, None]
    return ((keys <= bound) & some).view(-1, *shape)
