"""ImageNet-C's blurs: Gaussian, defocus, glass, motion and zoom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import AtOnce, Corruption, Numbers, quantise
from blemish.corruptions.imagenet_c.published import SOURCE
from blemish.corruptions.moves import A_LITTLE
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.disks import disk_blur, disk_levels
from blemish.ops.filters import all_near, gaussian_arrays, line_blur
from blemish.ops.filters import gaussian_blur as blur_gaussian
from blemish.ops.levels import Levels, unit_range
from blemish.ops.resample import mean_zoom, zoom_places
from blemish.ops.shuffle import shuffle_sources
from blemish.ops.transfer import to_device

# The largest reach in any table. One transform size for all severities: another image's may not change the rounding.
_MOTION_REACH = 44

# A blur of a smaller sigma moves a level by a millionth before it is truncated.
_FAINT = 0.4


def _gaussian(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    return blur_gaussian(images, params["sigma"])


def _near(params: Numbers, height: int, width: int) -> bool:
    return all_near(params["sigma"].tolist(), height, width, truncate=4.0)


def _make_gaussian(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    weights, radii = gaussian_arrays(params["sigma"].tolist())
    kernels.gaussian_levels(levels, out, weights.astype(np.float32), radii)


def _lenses(params: Params | Numbers) -> list[tuple[float, float]]:
    return list(zip(params["radius"].tolist(), params["alias_blur"].tolist(), strict=True))


def _defocus(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    return disk_blur(images, _lenses(params))


def _make_defocus(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    disk_levels(kernels, levels, out, _lenses(params))


class Offsets(NamedTuple):
    """Where each pixel is copied from: int offsets (B, passes, H, W), down and right."""

    dy: Tensor
    dx: Tensor


def _draw_glass(shape: Shape, params: Params, rng: CounterRng) -> Offsets:
    passes = max(1, int(params["iterations"].max()))
    side = 2 * to_device(params["max_delta"].clamp(min=1), rng.device, torch.float32).view(-1, 1, 1, 1)
    # One rank picks one of the side² places. A stream per pass: another image's passes may not change this one's.
    ranks = [rng.coarse_uniforms(f"place {i}", 1, shape.height, shape.width) for i in range(passes)]
    cell = torch.cat(ranks, dim=1).mul_(side * side).floor_()
    down = (cell / side).floor_()
    right = cell.addcmul_(down, side, value=-1)
    active = torch.arange(passes)[:, None, None] < params["iterations"].view(-1, 1, 1, 1)
    if not bool(active.all()):
        down, right = (torch.where(to_device(active, rng.device), v, side / 2) for v in (down, right))
    return Offsets(*((v - side / 2).to(torch.int8) for v in (down, right)))


def _truncated_blur(images: Tensor, sigma: Tensor) -> Tensor:
    """Blurred images on whole levels.

    A faint blur needs exact levels and double precision.
    """
    blurred = unit_range(quantise(blur_gaussian(images, sigma).clone()))
    faint = sigma < _FAINT
    if bool(faint.any()):
        levels = images[faint].mul(255 * 2**10).round_().to(torch.float64).mul_(2.0**-10)
        exact = blur_gaussian(levels, sigma[faint]).add(1e-9).floor_()
        blurred[faint] = unit_range(exact)
    return blurred


def _glass(images: Tensor, params: Params, draw: Offsets) -> Tensor:
    """Blur, truncate, copy each pixel from a random neighbour (row by row from the end, in place), blur again."""
    blurred = _truncated_blur(images, params["sigma"])
    sources = shuffle_sources(draw.dy, draw.dx, params["max_delta"].clamp(min=1))
    shuffled = blurred.flatten(2).gather(2, sources[:, None].expand(-1, images.shape[1], -1)).view_as(images)
    return blur_gaussian(shuffled, params["sigma"])


def _make_glass(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    weights, radii = gaussian_arrays(params["sigma"].tolist())
    reaches, passes = (params[name].astype(np.int64) for name in ("max_delta", "iterations"))
    keys = np.array([rng.keys(f"place {i}") for i in range(max(1, int(passes.max())))])
    faint = params["sigma"] < _FAINT
    kernels.glass(levels, out, weights.astype(np.float32), weights, radii, faint, keys, np.maximum(reaches, 1), passes)


class Angle(NamedTuple):
    """The direction of motion in degrees, (B,) on the CPU."""

    degrees: Tensor


def drawn_degrees(rng: CounterRng, least: float) -> list[float]:
    """A direction for each image, within a right angle from ``least`` on."""
    return [90 * share + least for (share,) in rng.on_cpu().uniforms("angle", 1).tolist()]


def _draw_motion(shape: Shape, params: Params, rng: CounterRng) -> Angle:
    return Angle(torch.tensor(drawn_degrees(rng, -45), dtype=torch.float64))


def motion_taps(radius: Tensor, sigma: Tensor, degrees: Tensor) -> tuple[Tensor, Tensor]:
    """ImageMagick's motion blur as shifts (B, taps, 2), down and right, and weights (B, taps).

    Taps i = 0 … 2·⌈radius⌉ lie on one side of the pixel, at distance i, weighted exp(−i²/2σ²).
    """
    shifts, weights = motion_arrays(radius.tolist(), sigma.tolist(), degrees.tolist())
    return torch.from_numpy(shifts), torch.from_numpy(weights)


def motion_arrays(
    radius: Sequence[float], sigma: Sequence[float], degrees: Sequence[float]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The same as arrays, for compiled kernels. So few numbers are all overhead."""
    kernels = [_line_weights(*setting) for setting in zip(radius, sigma, strict=True)]
    lengths = [len(own) for own in kernels]
    count = max(lengths)
    weights = np.zeros((len(kernels), count))
    for row, own in enumerate(kernels):
        weights[row, : len(own)] = own
    turns = [math.radians(angle) for angle in degrees]
    directions = np.array([side(turn) for turn in turns for side in (math.sin, math.cos)])
    moves = _steps(count) * directions.reshape(-1, 1, 2)
    moves -= 0.5
    shifts = np.ceil(moves, out=moves).astype(np.int64)
    if min(lengths) < count:
        shifts *= _steps(count) < np.array(lengths)[:, None, None]
    return shifts, weights


@lru_cache(maxsize=64)
def _steps(count: int) -> NDArray[np.float64]:
    return np.arange(count, dtype=np.float64)[:, None]


@lru_cache(maxsize=256)
def _line_weights(radius: float, sigma: float) -> NDArray[np.float64]:
    steps = torch.arange(2 * math.ceil(radius) + 1, dtype=torch.float64)
    weights = torch.exp(-0.5 * (steps / max(sigma, 1e-6)) ** 2)
    return (weights / weights.sum()).numpy()


def _motion(images: Tensor, params: Params, draw: Angle) -> Tensor:
    return line_blur(images, *motion_taps(params["radius"], params["sigma"], draw.degrees), reach=_MOTION_REACH)


def _zoom(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """The mean of the image and its enlargements; np.arange decides, as in the reference, how many there are."""
    return mean_zoom(images, zoom_factors(float(params["stop"][0]), float(params["step"][0])))


@lru_cache(maxsize=64)
def zoom_factors(stop: float, step: float) -> tuple[float, ...]:
    """How much the image is enlarged, each time."""
    return tuple(np.arange(1, stop, step).tolist())


def _make_motion(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    taps = motion_arrays(params["radius"].tolist(), params["sigma"].tolist(), drawn_degrees(rng, -45))
    kernels.line_levels(levels, out, *taps)


def _make_zoom(kernels: Any, levels: Levels, out: Levels, params: Numbers, rng: CounterRng) -> None:
    factors = zoom_factors(float(params["stop"][0]), float(params["step"][0]))
    kernels.zoom_levels(levels, out, *zoom_places(levels.shape[-2:], factors))


gaussian_blur = Corruption(
    name="gaussian_blur",
    family="blur",
    description="Blurs with a Gaussian.",
    table=SeverityTable.by_preset(
        ("sigma",),
        imagenet=(0, 1, 2, 3, 4, 6),
        inception=(0, 1.5, 2.5, 3.5, 4.5, 6.5),
        imagenet64=(0, 0.5, 0.75, 1, 1.25, 1.5),
        cifar=(0, 0.4, 0.6, 0.7, 0.8, 1),
    ),
    apply=_gaussian,
    source=SOURCE,
    version=2,
    at_once=AtOnce("blurs", _make_gaussian, _near, draws_little=True),
)

defocus_blur = Corruption(
    name="defocus_blur",
    family="blur",
    description="Blurs with a disk, like a lens out of focus.",
    table=SeverityTable.by_preset(
        ("radius", "alias_blur"),
        imagenet=((0, 0), (3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
        inception=((0, 0), (4, 0.1), (5, 0.5), (7, 0.5), (10, 0.5), (12, 0.5)),
        imagenet64=((0, 0), (0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
        cifar=((0, 0), (0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
    ),
    apply=_defocus,
    source=SOURCE,
    version=2,
    at_once=AtOnce("blurs", _make_defocus, draws_little=True),
)

glass_blur = Corruption(
    name="glass_blur",
    family="blur",
    description="Moves pixels about within a small distance, like frosted glass.",
    table=SeverityTable.by_preset(
        ("sigma", "max_delta", "iterations"),
        imagenet=((0, 0, 0), (0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
        inception=((0, 0, 0), (0.8, 1, 3), (1, 3, 1), (1.1, 2, 4), (1.2, 4, 2), (1.6, 5, 2)),
        imagenet64=((0, 0, 0), (0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
        cifar=((0, 0, 0), (0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
        rounded=("max_delta", "iterations"),
    ),
    draw=_draw_glass,
    apply=_glass,
    moves=A_LITTLE,
    source=SOURCE,
    version=2,
    at_once=AtOnce("blurs", _make_glass, _near, draws_little=True),
)

motion_blur = Corruption(
    name="motion_blur",
    family="blur",
    description="Smears along a line, like a camera in motion.",
    table=SeverityTable.by_preset(
        ("radius", "sigma"),
        imagenet=((0, 0), (10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
        inception=((0, 0), (12, 4), (17, 6), (17, 9), (17, 13), (22, 16)),
        imagenet64=((0, 0), (10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
        cifar=((0, 0), (6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
    ),
    draw=_draw_motion,
    apply=_motion,
    moves=A_LITTLE,
    source=SOURCE,
    at_once=AtOnce("lines", _make_motion, draws_little=True),
)

zoom_blur = Corruption(
    name="zoom_blur",
    family="blur",
    description="Averages enlargements, like a camera moving quickly towards the scene.",
    table=SeverityTable.by_preset(
        ("stop", "step"),
        imagenet=((1, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
        imagenet64=((1, 0.01), (1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
        cifar=((1, 0.01), (1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
    ),
    apply=_zoom,
    moves=A_LITTLE,
    source=SOURCE,
    shared=("stop", "step"),
    at_once=AtOnce("lines", _make_zoom, draws_little=True),
)
