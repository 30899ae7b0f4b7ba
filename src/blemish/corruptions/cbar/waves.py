"""C̄'s added patterns that a formula gives for every pixel: a sine wave, concentric rings and plasma."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

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
    with_noise,
)
from blemish.corruptions.severity import Params
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out


class Wave(NamedTuple):
    """A plane wave: radians per pixel to the right and down, and its phase; float64 (B, 1, 1, 1)."""

    right: Tensor
    down: Tensor
    phase: Tensor


def _draw_wave(shape: Shape, params: Params, rng: CounterRng) -> Wave:
    """One frequency is anything, the other no higher; which is which is chosen."""
    high = uniform(rng, "high", -math.pi, math.pi, 1, 1, 1)
    low = uniform(rng, "low", -1, 1, 1, 1, 1) * high.abs()
    swapped = rng.integers("swapped", 1, 1, 1, high=2) == 1
    phase = uniform(rng, "phase", 0, 2 * math.pi, 1, 1, 1)
    return Wave(torch.where(swapped, low, high), torch.where(swapped, high, low), phase)


def _single_frequency(images: Tensor, params: Params, draw: Wave) -> Tensor:
    rows, columns = pixel_axes(images)
    wave = (columns * draw.right + rows * draw.down + draw.phase).sin_()
    return as_bytes(images + wave.mul_(float64_per_image(params, "intensity", images)))


class Rings(NamedTuple):
    """Rings about a centre, their width and how far they waver, in pixels, and how often; float64 (B, 1, 1, 1)."""

    centre_column: Tensor
    centre_row: Tensor
    frequency: Tensor
    amplitude: Tensor
    width: Tensor


def _draw_rings(shape: Shape, params: Params, rng: CounterRng) -> Rings:
    side = min(shape.height, shape.width)
    bounds = {"column": shape.width, "row": shape.height, "frequency": 10, "amplitude": side / 10, "width": side / 10}
    return Rings(*(uniform(rng, name, 0, bound, 1, 1, 1) for name, bound in bounds.items()))


def _cocentric(images: Tensor, params: Params, draw: Rings) -> Tensor:
    """A saw tooth along the wavering distance. The reference's name calls it a sine."""
    rows, columns = pixel_axes(images)
    across, down = columns - draw.centre_column, rows - draw.centre_row
    distance = (across * across + down * down).sqrt_()
    waver = (torch.atan2(across, down) * draw.frequency).sin_().mul_(draw.amplitude)
    tooth = (distance + waver).remainder_(draw.width).div_(draw.width).sub_(0.5)
    return as_bytes(images + tooth.mul_(float64_per_image(params, "intensity", images)))


class Plasma(NamedTuple):
    """Time, number of iterations, sharpness, and the size of the pattern in pixels; float64 (B, 1, 1, 1)."""

    time: Tensor
    iterations: Tensor
    sharpness: Tensor
    scale: Tensor


_ITERATIONS = (4, 6)


def _draw_plasma(shape: Shape, params: Params, rng: CounterRng) -> Plasma:
    fewest, most = _ITERATIONS
    return Plasma(
        uniform(rng, "time", 0, 6 * math.pi, 1, 1, 1),
        rng.integers("iterations", 1, 1, 1, high=most - fewest + 1).add_(fewest).to(torch.float64),
        uniform(rng, "sharpness", 0.5, 1, 1, 1, 1),
        uniform(rng, "scale", 0.075, 0.2, 1, 1, 1) * min(shape.height, shape.width),
    )


def _plasma_field(images: Tensor, draw: Plasma) -> Tensor:
    """Red, green and blue in −1 … 1: a plane that is folded by waves of ever shorter length."""
    rows, columns = pixel_axes(images)
    u, v = columns / draw.scale, rows / draw.scale
    kernels = compiled("patterns") if images.device.type == "cpu" else None
    if kernels is not None:
        return _folded(kernels, u, v, draw)
    fold, slow, fade = 1.0, 1.0, torch.ones_like(draw.time)
    for step in range(_ITERATIONS[1]):
        time = draw.time / slow
        p, q = (v * fold + time).cos_().div_(fade), (u * fold + time).sin_().div_(fade)
        going = step < draw.iterations
        u, v = torch.where(going, u + (p - 0.3 * q), u), torch.where(going, v + (q + 0.3 * p), v)
        fold, slow, fade = fold * 1.93, slow * 1.15, fade * (2.25 - draw.sharpness)
    colours = [u - draw.time, (u + v + draw.time.sin()) * 0.5, v + draw.time]
    return torch.cat(colours, dim=1).sin_()


def _folded(kernels: Any, u: Tensor, v: Tensor, draw: Plasma) -> Tensor:
    """The same by compiled kernels, between sines and cosines in place."""
    time, iterations, fade = draw.time.flatten(), draw.iterations.flatten(), torch.ones(len(u), dtype=torch.float64)
    # The first waves run along one side each.
    cosines, sines = (v * 1.0 + draw.time).cos_(), (u * 1.0 + draw.time).sin_()
    shape = (len(u), v.shape[2], u.shape[3])
    u, v, cosines, sines = (part[:, 0].expand(shape).contiguous() for part in (u, v, cosines, sines))
    often, slow = 1.0, 1.0
    for step in range(_ITERATIONS[1]):
        if step > 0:
            cosines.cos_(), sines.sin_()
        often, slow = often * 1.93, slow * 1.15
        shared_out(kernels.fold, [u, v, cosines, sines, fade, step < iterations, time / slow], often)
        fade = fade * (2.25 - draw.sharpness.flatten())
    field = torch.empty((len(u), 3, *shape[1:]), dtype=torch.float64, device="cpu")
    shared_out(kernels.three_phases, [u, v, time, time.sin(), field])
    return field.sin_()


def _plasma(images: Tensor, params: Params, draw: Plasma) -> Tensor:
    intensity = float64_per_image(params, "intensity", images)
    return with_noise(images, 1 - intensity / 255, _plasma_field(images, draw), intensity)


single_frequency_greyscale = unit(
    name="cbar:single_frequency_greyscale",
    description="Adds a plane sine wave of one frequency, the same in all channels.",
    # Published for 224 pixels. For 32 the same steps of the range that was scanned there.
    table=by_magnitude(imagenet=(1, 1.5, 2, 4.5, 5), cifar=(0.6, 0.9, 1.2, 2.7, 3), intensity=(0, lambda m: 19.6 * m)),
    draw=_draw_wave,
    apply=_single_frequency,
    uint8_io=True,
)

cocentric_sine_waves = unit(
    name="cbar:cocentric_sine_waves",
    description="Adds wavering rings around a point, dark on one side and bright on the other.",
    # Published for 224 pixels. For 32 the same steps of the range that was scanned there.
    table=by_magnitude(imagenet=(3, 5, 8, 9, 10), cifar=(1.5, 2.5, 4, 4.5, 5), intensity=(0, lambda m: 12.8 * m)),
    draw=_draw_rings,
    apply=_cocentric,
    uint8_io=True,
)

plasma_noise = unit(
    name="cbar:plasma_noise",
    description="Mixes in swirling clouds of colour.",
    # Published for 224 pixels. For 32 the same steps of the range that was scanned there.
    table=by_magnitude(
        imagenet=(4.75, 7, 8.5, 9.25, 10), cifar=(2.1, 4.2, 5.6, 6.3, 7), intensity=(0, lambda m: 6.4 * m)
    ),
    draw=_draw_plasma,
    apply=_plasma,
    uint8_io=True,
)
