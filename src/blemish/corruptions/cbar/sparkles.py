"""C̄'s rays of light: five sparkles, and one inverse sparkle that whitens all around it."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.cbar.published import (
    as_bytes,
    by_magnitude,
    float64_per_image,
    pixel_axes,
    uniform,
    unit,
)
from blemish.corruptions.severity import Params
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.transfer import to_device

_SPARKLES = 5
_FEWEST_RAYS, _MOST_RAYS = 50, 199
_SPREAD = 0.25  # of the lengths of rays, as a part of their mean


class Rays(NamedTuple):
    """Sparkles of each image: centres (B, N, 2), row and column in pixels, numbers of rays (B, N), and normal values
    for the lengths of the rays (B, N, most rays); float64.
    """

    centres: Tensor
    counts: Tensor
    normals: Tensor


def _draw_rays(rng: CounterRng, number: int, shape: Shape, low: float, high: float) -> Rays:
    sides = torch.tensor([shape.height, shape.width], dtype=torch.float64)
    return Rays(
        uniform(rng, "centres", low, high, number, 2) * to_device(sides, rng.device),
        rng.integers("counts", number, high=_MOST_RAYS - _FEWEST_RAYS + 1).add_(_FEWEST_RAYS).to(torch.float64),
        rng.normals("lengths", number, _MOST_RAYS).to(torch.float64),
    )


def _draw_sparkles(shape: Shape, params: Params, rng: CounterRng) -> Rays:
    return _draw_rays(rng, _SPARKLES, shape, 0, 1)


def _draw_inverse(shape: Shape, params: Params, rng: CounterRng) -> Rays:
    return _draw_rays(rng, 1, shape, 0.25, 0.75)


def _about(images: Tensor, draw: Rays, which: int) -> tuple[Tensor, Tensor]:
    """How far below and to the right of a sparkle's centre rows and columns lie."""
    rows, columns = pixel_axes(images)
    centre_row, centre_column = (draw.centres[:, which, i].view(-1, 1, 1, 1) for i in (0, 1))
    return rows - centre_row, columns - centre_column


def _light(images: Tensor, draw: Rays, which: int, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """What a sparkle with these lengths of rays (B, rays) gives to each pixel, as two factors, (B, 1, H, W) each.

    The first fades between the rays, the second is the square of length over distance.
    """
    down, across = _about(images, draw, which)
    rays = draw.counts[:, which].view(-1, 1, 1, 1)
    turn = (torch.atan2(across, down) + math.pi).div_(2 * math.pi).mul_(rays)
    first = turn.floor()
    between = turn.sub_(first)
    before, after = (
        lengths.gather(1, (first + step).remainder_(rays).to(torch.int64).flatten(1)).view(first.shape)
        for step in (0, 1)
    )
    length = (after - before).mul_(between).add_(before)
    distance = (down * down + across * across).add_(1e-4)
    return between.sub_(0.5).square_().neg_().add_(1), length.square_().div_(distance)


def _sparkles(images: Tensor, params: Params, draw: Rays) -> Tensor:
    """Below severity 1 the light fades: rays are never shorter than a pixel."""
    radius = (float64_per_image(params, "radius", images) * min(images.shape[-2:])).flatten(1)
    opacity = float64_per_image(params, "opacity", images)
    levels = images.to(torch.float32)
    kernels = compiled("patterns") if images.device.type == "cpu" else None
    for which in range(draw.centres.shape[1]):
        lengths = (draw.normals[:, which] * (_SPREAD * radius)).add_(radius).clamp_(min=1)
        if kernels is not None:
            centres, counts = draw.centres[:, which], draw.counts[:, which]
            angles = torch.atan2(*_about(images, draw, which)[::-1])[:, 0]
            shared_out(kernels.sparkle, [levels, angles, centres, counts, lengths, opacity.flatten()])
            continue
        shape, strength = _light(images, draw, which, lengths)
        gain = shape.mul_(strength).clamp_(0, 1).mul_(opacity)
        below = levels.to(torch.float64)
        levels = (below + gain * (255 - below)).to(torch.float32)
    return as_bytes(levels)


def _inverse(images: Tensor, params: Params, draw: Rays) -> Tensor:
    """Below severity 1 the white fades: even the weakest leaves the gaps between rays white."""
    radius = min(images.shape[-2:]) / 4
    lengths = draw.normals[:, 0] * (_SPREAD * radius) + radius
    shape, strength = _light(images, draw, 0, lengths)
    gain = shape.mul_(strength.pow_(float64_per_image(params, "exponent", images))).clamp_(0, 1)
    opacity = float64_per_image(params, "opacity", images)
    kept = gain.sub_(1).mul_(opacity).add_(1)
    return as_bytes((images.to(torch.float64) - 255).mul_(kept).add_(255))


sparkles = unit(
    name="cbar:sparkles",
    description="Puts five bright stars with many rays on the image.",
    table=by_magnitude(
        imagenet=(1, 2, 3, 5, 6),
        cifar=(0.7, 3.5, 5.6, 6.3, 7),
        radius=(0, lambda m: 0.01 * m),
        opacity=(0, lambda _: 1),
    ),
    draw=_draw_sparkles,
    apply=_sparkles,
    uint8_io=True,
)

inverse_sparkles = unit(
    name="cbar:inverse_sparkles",
    description="Whitens the image outwards from a point, in rays.",
    table=by_magnitude(
        imagenet=(1, 2, 4, 9, 10),
        cifar=(1, 1.5, 2.5, 4.5, 5),
        exponent=(0, lambda m: 0.13 * m),
        opacity=(0, lambda _: 1),
    ),
    draw=_draw_inverse,
    apply=_inverse,
    uint8_io=True,
)
