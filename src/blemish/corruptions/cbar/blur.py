"""C̄'s blurs: colours that are enlarged by different amounts, and a turn about the centre."""

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
    in_colour,
    unit,
)
from blemish.corruptions.moves import A_LITTLE
from blemish.corruptions.severity import Params
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.filters import border_index
from blemish.ops.splines import spline_weights
from blemish.ops.transfer import to_device
from blemish.ops.turns import turned_mean


class Order(NamedTuple):
    """Which of the three enlargements each channel gets, a permutation of 0, 1, 2; int64 (B, 3) on the CPU."""

    order: Tensor


def _draw_order(shape: Shape, params: Params, rng: CounterRng) -> Order:
    return Order(rng.on_cpu().permutations("order", 3))


Taps = list[tuple[Tensor, Tensor]]
"""Places along a side, int64, and weights, float64, for each channel, (B, 3, size); four of them."""


def spline_taps(position: Tensor, device: torch.device) -> Taps:
    """The taps of cubic splines, without their filter, at positions (B, 3, size) on the CPU.

    A position outside the image has no weight; where only a tap lies outside, the border mirrors without its edge.
    """
    size = position.shape[-1]
    inside = (position >= 0) & (position <= size - 1)
    first = position.floor().clamp(0, size - 1)
    index = border_index(-1, size + 2, size, "reflect101")
    places = [index[(first + step).to(torch.int64)] for step in range(4)]
    weights = [weight * inside for weight in spline_weights(position - first)]
    return [(to_device(p, device), to_device(w, device)) for p, w in zip(places, weights, strict=True)]


def spline_levels(levels: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """Three channels at positions (B, 3, H) and (B, 3, W), in whole levels, float64.

    The sum over the taps runs row by row, as the reference's does: halves are common, and rounded up.
    """
    row_taps, column_taps = spline_taps(down, levels.device), spline_taps(across, levels.device)
    kernels = compiled("doubles") if levels.device.type == "cpu" else None
    if kernels is not None:
        out = torch.empty(levels.shape, dtype=torch.float64)
        tables = [torch.stack(part, dim=1) for taps in (row_taps, column_taps) for part in zip(*taps, strict=True)]
        shared_out(kernels.spline_levels, [levels.contiguous(), *tables, out])
        return out
    total = torch.zeros(levels.shape, dtype=torch.float64, device=levels.device)
    for row, row_weight in row_taps:
        part = levels.gather(2, row[..., None].expand_as(levels)).to(torch.float64).mul_(row_weight[..., None])
        for column, weight in column_taps:
            total += part.gather(3, column[:, :, None].expand_as(part)).mul_(weight[:, :, None])
    return total.add_(0.5).floor_()


def faded(images: Tensor, changed: Tensor, params: Params) -> Tensor:
    """A change in whole levels that fades in by `opacity`, rounded."""
    opacity = float64_per_image(params, "opacity", images)
    return as_bytes(images.to(torch.float64).lerp_(changed.to(torch.float64), opacity).add_(0.5).floor_())


def _enlarged(size: int, scale: Tensor) -> Tensor:
    """Where pixels along a side come from in enlargements `scale` (B, 3), trimmed to the side: (B, 3, size).

    Corners are aligned.
    """
    large = (size * scale).round()[..., None]
    return (torch.arange(size) + (large - size).div(2).floor()) * ((size - 1) / (large - 1))


def _transverse(images: Tensor, params: Params, draw: Order) -> Tensor:
    """Below severity 1 the image fades into it: even the channel that is not enlarged is blurred."""
    steps = torch.tensor([0.0, 0.5, 1.0], dtype=torch.float64)[draw.order]
    scale = 1 + params["enlargement"][:, None] * steps
    down, across = (_enlarged(size, scale) for size in images.shape[-2:])
    return faded(images, in_colour(images, lambda levels: spline_levels(levels, down, across)), params)


_TURNS = 21


def _circular(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """The mean of turned images, the less turned the heavier; what comes from outside is black.

    Below severity 1 the image fades into it: the smallest turn already lets black in along the border.
    """
    half_angle = math.radians(float(params["half_angle"][0]))
    steps = [i / (_TURNS // 2) - 1 for i in range(_TURNS)]
    parts = [math.exp(-2 * step * step) for step in steps]
    turns = tuple((step * half_angle, part / sum(parts)) for step, part in zip(steps, parts, strict=True))
    turned = turned_mean(images, turns)
    # Both are on the CPU: whether anything fades is known without waiting for a GPU.
    return turned if bool((params["opacity"] == 1).all()) else faded(images, turned, params)


transverse_chromatic_abberation = unit(
    name="cbar:transverse_chromatic_abberation",
    description="Enlarges the three channels by different amounts.",
    # Published for 32 pixels. For 224 the same steps of the range that was scanned there, which is the same.
    table=by_magnitude(
        imagenet=(1, 2, 5, 9, 10), cifar=(1, 2, 5, 9, 10), enlargement=(0, lambda m: 0.05 * m), opacity=(0, lambda _: 1)
    ),
    draw=_draw_order,
    apply=_transverse,
    moves=A_LITTLE,
    uint8_io=True,
)

circular_motion_blur = unit(
    name="cbar:circular_motion_blur",
    description="Averages turns of the image about its centre, like a turning camera.",
    # Published for 32 pixels. For 224 the same steps of the range that was scanned there.
    table=by_magnitude(
        imagenet=(2.35, 3.2, 4.05, 4.9, 5.75),
        cifar=(2.8, 3.6, 4.4, 5.2, 6),
        half_angle=(0, lambda m: 1.5 * m),
        opacity=(0, lambda _: 1),
    ),
    apply=_circular,
    moves=A_LITTLE,
    version=3,
    shared=("half_angle",),
    uint8_io=True,
)
