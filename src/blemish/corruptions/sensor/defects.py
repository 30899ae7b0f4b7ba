"""What is wrong with a camera itself: dead pixels, a rolling shutter, and dirt on the lens."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image, side_scale
from blemish.corruptions.draws import Field, draw_pixel_uniforms
from blemish.corruptions.moves import by_map
from blemish.corruptions.sensor.published import OURS
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.positions import Positions, pixel_places
from blemish.ops.transfer import to_device
from blemish.ops.warp import sample


def _dead_pixels(levels: Tensor, params: Params, draw: Field) -> Tensor:
    """Ranks below `share` are defects, the lower half stuck at white and the upper at black.

    A colour sensor has one colour at each place and fills in the others from neighbours, so that a defect spreads. In
    whole numbers, so that neither the order of sums nor the device matters.
    """
    share = per_image(params["share"], levels)
    defect, stuck = draw.field < share, (draw.field < share / 2).to(torch.float32) * 255
    if levels.shape[1] == 1:
        return torch.where(defect, stuck.to(torch.uint8), levels)
    error = (stuck - levels).mul_(defect).mul_(_bayer(levels.shape[-2], levels.shape[-1], levels.device))
    wide = F.pad(error, (1, 1, 1, 1))
    level = wide[..., :-2] + wide[..., 2:]
    upright = wide[..., :-2, 1:-1] + wide[..., 2:, 1:-1]
    # Four times what red and blue get: the whole at their own place, halves beside it, quarters across.
    spread = level[..., :-2, :] + level[..., 2:, :] + 2 * (level[..., 1:-1, :] + upright) + 4 * error
    spread[:, 1] = level[:, 1, 1:-1] + upright[:, 1] + 4 * error[:, 1]
    return spread.mul_(0.25).add_(levels).clamp_(0, 255).to(torch.uint8)


def _bayer(height: int, width: int, device: torch.device) -> Tensor:
    """1 where a sensor has the colour, (3, H, W): red and green in even rows, green and blue in odd ones."""
    y, x = torch.arange(height, device=device)[:, None] % 2, torch.arange(width, device=device) % 2
    return torch.stack([(1 - y) * (1 - x), (x - y).abs(), y * x])


class Motion(NamedTuple):
    """How a camera shook: uniform values in (0, 1), (B, 6) on the CPU."""

    ranks: Tensor


def _draw_motion(shape: Shape, params: Params, rng: CounterRng) -> Motion:
    return Motion(rng.on_cpu().uniforms("motion", 6).to(torch.float64))


# How often a camera shakes while an image is read, at least and at most.
_SHAKES = (0.6, 2.5)


def _row_moves(images: Tensor, params: Params, draw: Motion) -> tuple[Tensor, Tensor]:
    """How far right and down each row looks, (B, H) float64 on the CPU."""
    height, width = images.shape[-2:]
    side = side_scale(height, width)
    pan, shake = (params[name][:, None] * side for name in ("pan", "shake"))
    way, rate, across, down, first, second = (rank[:, None] for rank in draw.ranks.unbind(1))
    time = (torch.arange(height, dtype=torch.float64) + 0.5) / height
    turns = 2 * math.pi * (_SHAKES[0] + (_SHAKES[1] - _SHAKES[0]) * rate) * time
    # A pan has a random direction, and so has the shaking: mostly sideways, which is what is seen.
    drift = torch.where(way < 0.5, -pan, pan) * (0.5 + 0.5 * across) * (time - 0.5)
    right = drift + shake * torch.sin(turns + 2 * math.pi * first)
    return right, shake * 0.5 * down * torch.sin(turns + 2 * math.pi * second)


def _rolling_shutter(images: Tensor, params: Params, draw: Motion) -> Tensor:
    """Rows are read one after the other while the camera pans and shakes: each is moved by where it then was."""
    height, width = images.shape[-2:]
    right, lower = _row_moves(images, params, draw)
    x = torch.arange(width, device=images.device) + to_device(right, images.device, torch.float32)[..., None]
    y = torch.arange(height, dtype=torch.float64) + lower
    rows = to_device(y, images.device, torch.float32)[..., None].expand_as(x)
    return sample(images, x, rows, outside="reflect101")


def _rows_moved(images: Tensor, params: Params, draw: Motion) -> Positions:
    right, lower = _row_moves(images, params, draw)
    x, y = pixel_places(len(images), *images.shape[-2:])
    return Positions(x + right[..., None], y + lower[..., None], "reflect101")


_SPECKS, _SMEARS = 90, 4
# Dirt is out of focus: this many points along the shorter side show all of it.
_POINTS = 64


class Dirt(NamedTuple):
    """Spots on the lens, specks and then smears: (B, N) each on the CPU, uniform in (0, 1)."""

    x: Tensor
    y: Tensor
    size: Tensor
    strength: Tensor
    turn: Tensor


def _draw_dirt(shape: Shape, params: Params, rng: CounterRng) -> Dirt:
    # Always as many as the strongest has, so that a stronger one adds spots to those of a weaker one.
    return Dirt(*rng.on_cpu().uniforms("spots", 5, _SPECKS + _SMEARS).unbind(1))


def _spots(images: Tensor, params: Params, draw: Dirt) -> tuple[Tensor, Tensor]:
    """What specks and smears let through, two of (B, 1, points down, points right)."""
    device, (height, width) = images.device, images.shape[-2:]
    side = min(height, width)
    down, right = (max(2, min(length, round(_POINTS * length / side))) for length in (height, width))
    # Places and sizes count in shorter sides.
    y = torch.arange(down, device=device, dtype=torch.float32).mul_(height / side / (down - 1))[:, None]
    x = torch.arange(right, device=device, dtype=torch.float32).mul_(width / side / (right - 1))
    count, amount = per_image(params["specks"], images), per_image(params["smear"], images)
    # Sines are taken in double precision, where no processor's last digit matters.
    angle = draw.turn.to(torch.float64) * math.pi
    numbers = torch.stack([*draw[:4], angle.cos().to(torch.float32), angle.sin().to(torch.float32)])
    spots = to_device(numbers, device)[..., None, None, None]
    clear = [torch.ones((len(images), 1, down, right), device=device, dtype=torch.float32) for _ in range(2)]
    for number in range(_SPECKS + _SMEARS):
        across, below, size, strength, cosine, sine = spots[:, :, number]
        dx, dy = x - across * (width / side), y - below * (height / side)
        if number < _SPECKS:
            # Most are small. One that is not wholly there yet is fainter.
            radius = 0.015 + 0.06 * size * size * size
            shape = ((dx * dx + dy * dy) / (radius * radius)).mul_(-0.5).add_(1.25).clamp_(0, 1)
            weight = (0.55 + 0.45 * strength) * (count - number).clamp(0, 1)
            clear[0].mul_(1 - shape * weight)
            continue
        along, aside = dx * cosine + dy * sine, dy * cosine - dx * sine
        length = 0.2 + 0.25 * size
        shape = 1 - ((along * along).add_(aside * aside * 6) / (length * length)).clamp_(0, 1)
        clear[1].mul_(1 - shape * shape * (amount * (0.4 + 0.6 * strength)))
    return clear[0], clear[1]


# How much of the light that a speck stops is scattered into the image again, and how bright a smear glares.
_SCATTERED, _GLARE = 0.25, 0.75


def _lens_dirt(images: Tensor, params: Params, draw: Dirt) -> Tensor:
    """Specks darken towards a rest of scattered light, smears glare: both are out of focus."""
    height, width = images.shape[-2:]
    mean = images.mean((2, 3), keepdim=True, dtype=torch.float64).to(torch.float32)
    specks, smears = (
        F.interpolate(clear, size=(height, width), mode="bilinear", align_corners=True)
        for clear in _spots(images, params, draw)
    )
    images = images.mul_(smears).add_((1 - smears) * _GLARE)
    return images.mul_(specks).add_((1 - specks) * (mean * _SCATTERED))


dead_pixels = Corruption(
    name="sensor:dead_pixels",
    family="sensor",
    description="Places of the sensor that are stuck at white or black, and colour their neighbours.",
    table=SeverityTable.of(share=(0, 0.005, 0.015, 0.03, 0.05, 0.08)),
    draw=draw_pixel_uniforms,
    apply=_dead_pixels,
    uint8_io=True,
    source=OURS,
)

rolling_shutter = Corruption(
    name="sensor:rolling_shutter",
    family="sensor",
    description="Slants and waves: rows are read one after the other while the camera pans and shakes.",
    table=SeverityTable.of(pan=(0, 20, 45, 70, 100, 140), shake=(0, 2, 4.5, 8, 12, 17)),
    draw=_draw_motion,
    apply=_rolling_shutter,
    moves=by_map(_rows_moved),
    source=OURS,
)

lens_dirt = Corruption(
    name="sensor:lens_dirt",
    family="sensor",
    description="Dark specks and bright smears on the lens, out of focus.",
    table=SeverityTable.of(specks=(0, 14, 28, 44, 64, 90), smear=(0, 0.3, 0.5, 0.7, 0.85, 1)),
    draw=_draw_dirt,
    apply=_lens_dirt,
    source=OURS,
)
