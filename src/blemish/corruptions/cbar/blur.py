"""C̄'s blurs: colours that are enlarged by different amounts, and a turn about the centre."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.cbar.published import (
    as_bytes,
    by_magnitude,
    float64_per_image,
    in_colour,
    pixel_axes,
    unit,
)
from blemish.corruptions.moves import A_LITTLE
from blemish.corruptions.severity import Params
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out, shares, together
from blemish.ops.filters import border_index, pad
from blemish.ops.splines import interpolating_map, spline_weights
from blemish.ops.transfer import to_device


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
    height, width = images.shape[-2:]
    smooth = (interpolating_map(size, images.device) for size in (height, width))
    coefficients = next(smooth).down(images.to(torch.float64).div_(255))
    coefficients = pad(next(smooth).across(coefficients), 1, 2, 1, 2, "reflect101").to(torch.float32)
    half_angle = math.radians(float(params["half_angle"][0]))
    steps = [i / (_TURNS // 2) - 1 for i in range(_TURNS)]
    parts = [math.exp(-2 * step * step) for step in steps]
    kernels = compiled("turns") if images.device.type == "cpu" else None
    if kernels is not None:
        angles = [step * half_angle for step in steps]
        turns = [[math.cos(a), math.sin(a), share / sum(parts)] for a, share in zip(angles, parts, strict=True)]
        return faded(images, as_bytes(_turned_mean(kernels, coefficients, turns).mul_(255)), params)
    stride = coefficients.shape[-1]
    flat = coefficients.flatten(0, 1).flatten(1)
    rows, columns = pixel_axes(images)
    middle_row, middle_column = (height - 1) / 2, (width - 1) / 2
    down, right = rows - middle_row, columns - middle_column
    total = torch.zeros((len(flat), height * width), dtype=torch.float32, device=images.device)
    for step, share in zip(steps, parts, strict=True):
        cos, sin = math.cos(step * half_angle), math.sin(step * half_angle)
        row = cos * down + sin * right + middle_row
        column = -sin * down + cos * right + middle_column
        inside = (row >= 0) & (row <= height - 1) & (column >= 0) & (column <= width - 1)
        top, left = row.floor().clamp_(0, height - 1), column.floor().clamp_(0, width - 1)
        first = (top * stride + left).to(torch.int64).flatten()
        share_here = inside.to(torch.float64).mul_(share / sum(parts))
        row_weights = [w.flatten() for w in spline_weights(row - top)]
        weights = [(w * share_here).to(torch.float32).flatten() for w in spline_weights(column - left)]
        for i, row_weight in enumerate(row_weights):
            line = torch.zeros_like(total)
            for j, weight in enumerate(weights):
                line += flat.gather(1, (first + (i * stride + j)).expand(len(flat), -1)).mul_(weight)
            total += line.mul_(row_weight.to(torch.float32))
    return faded(images, as_bytes(total.view(images.shape).mul_(255)), params)


def _turned_mean(kernels: Any, coefficients: Tensor, turns: list[list[float]]) -> Tensor:
    """By compiled kernels; each thread has some of the images."""
    count, channels, height, width = coefficients.shape
    out = torch.empty(count, channels, height - 3, width - 3, dtype=torch.float32, device="cpu")
    table = np.array(turns)
    target = out.numpy()  # to torch, each thread has a mode of its own, and what one makes another may not change

    def work(rows: slice) -> None:
        planes = coefficients[rows].flatten(0, 1).permute(1, 2, 0)
        number = planes.shape[-1]
        # Sixteen at a time are worked on as fast as one.
        planes = F.pad(planes, (0, -number % 16 if number > 8 else 0)).contiguous()
        made = torch.empty(height - 3, width - 3, planes.shape[-1], dtype=torch.float32, device="cpu")
        kernels.turned_mean(planes.numpy(), table, made.numpy())
        target[rows] = made[..., :number].permute(2, 0, 1).reshape(-1, channels, height - 3, width - 3).numpy()

    together([partial(work, rows) for rows in shares(count)])
    return out


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
    version=2,
    shared=("half_angle",),
    uint8_io=True,
)
