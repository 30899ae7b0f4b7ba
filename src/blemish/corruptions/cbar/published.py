"""What the units of C̄ share: their source, tables from magnitudes, and levels in double precision.

The reference works on levels 0 … 255 in double precision and truncates at the end; so do these units. Then a rounding
error of one processor or device reaches a pixel about once in a million million values.

Lengths are parts of the side S of a square image; of others the shorter side counts. A place is anywhere in the image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.corruptions.base import Corruption
from blemish.corruptions.severity import PRESETS, Params, SeverityTable
from blemish.ops.colour import luminance
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.levels import truncated
from blemish.ops.transfer import to_device

SOURCE = "Mintun, Kirillov and Xie, NeurIPS 2021: the published generator of ImageNet-C̄ and CIFAR-10-C̄"

unit = partial(Corruption, family="cbar", source=SOURCE)
"""Declares one of the corruptions."""

Formula = tuple[float, Callable[[float], float]]
"""A parameter at severity 0, where there is no corruption, and from a magnitude."""


def by_magnitude(
    *, imagenet: Sequence[float], cifar: Sequence[float], rounded: Sequence[str] = (), **parameters: Formula
) -> SeverityTable:
    """A table from the magnitudes at severities 1 … 5; ImageNet-C's other presets have those of the nearest size.

    >>> table = by_magnitude(imagenet=(1, 2, 3, 4, 5), cifar=(2, 3, 4, 5, 6), depth=(0, lambda m: 10 * m))
    >>> table.at([0.5, 2], "imagenet")["depth"].tolist(), table.at([2], "imagenet64")["depth"].tolist()
    ([5.0, 20.0], [30.0])
    """
    magnitudes = {"imagenet": imagenet, "inception": imagenet, "imagenet64": cifar, "cifar": cifar}
    first = tuple(float(identity) for identity, _ in parameters.values())
    rows = {
        preset: (first, *(tuple(float(formula(m)) for _, formula in parameters.values()) for m in chosen))
        for preset, chosen in magnitudes.items()
    }
    return SeverityTable(tuple(parameters), rows, PRESETS, rounded=frozenset(rounded))


def uniform(rng: CounterRng, name: str, low: float, high: float, *shape: int) -> Tensor:
    """Uniform values between two numbers, float64 (B, *shape)."""
    return rng.uniforms(name, *shape).to(torch.float64).mul_(high - low).add_(low)


def float64_per_image(params: Params, name: str, images: Tensor) -> Tensor:
    """A parameter of each image as (B, 1, 1, 1) float64 beside the images."""
    return to_device(params[name], images.device).view(-1, 1, 1, 1)


def pixel_axes(images: Tensor) -> tuple[Tensor, Tensor]:
    """The rows (H, 1) and columns (W) of the pixels, float64, from 0."""
    height, width = (torch.arange(n, dtype=torch.float64, device=images.device) for n in images.shape[-2:])
    return height[:, None], width


def as_bytes(levels: Tensor) -> Tensor:
    """Levels clipped to 0 … 255 and truncated; overwrites its input."""
    return truncated(levels.clamp_(0, 255))


def with_noise(images: Tensor, gain: Tensor, noise: Tensor, strength: Tensor) -> Tensor:
    """Levels · gain + noise (B, 3, H, W) · strength, as bytes; gain and strength are (B, 1, 1, 1)."""
    kernels = compiled("patterns") if images.device.type == "cpu" and images.shape[1] == 3 else None
    if kernels is not None:
        out = torch.empty(images.shape, dtype=torch.uint8, device="cpu")
        shared_out(kernels.added, [images.contiguous(), gain.flatten(), noise, strength.flatten(), out])
        return out
    return as_bytes(in_colour(images, lambda levels: gain * levels + noise * strength))


def in_colour(levels: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Levels after a change that needs three channels; a gray image becomes the luminance of its colour version."""
    if levels.shape[1] == 3:
        return change(levels)
    return luminance(change(levels.expand(-1, 3, -1, -1)))
