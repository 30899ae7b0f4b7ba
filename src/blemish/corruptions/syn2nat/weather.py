"""Syn2Nat's candidates of weather and light: fog, rain, shadow, snow and sun flare.

Severity 5 is the published setting (albumentations 0.5.2 at 224 pixels); each description says what lower severities
reduce. Lengths in pixels scale with the side of the square that has the image's area, relative to 224.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image
from blemish.corruptions.draws import Field
from blemish.corruptions.severity import Params, SeverityTable
from blemish.corruptions.syn2nat.published import HALF_LEVEL, span, unit
from blemish.ops.box import box_blur
from blemish.ops.drawing import disc_counts, distances, paint_discs, polygon_union, stroke_mask
from blemish.ops.hsv import lightness, relit
from blemish.ops.transfer import to_device


def _scale(height: int, width: int) -> float:
    """How many pixels a pixel of the published settings is."""
    return math.sqrt(height * width) / 224


def _rounded_to_levels(images: Tensor) -> Tensor:
    """Rounded to whole grey levels."""
    return images.mul_(255).add_(0.5).floor_().mul_(1 / 255)


class Haze(NamedTuple):
    """The rank of the fog coefficient, (B,), and offsets of discs from the centre in (−1, 1), (B, 21, 2); CPU."""

    density: Tensor
    offsets: Tensor


# At 224 pixels the reference puts hw // 10 discs around the middle and twice as many over the whole image, where hw,
# the diameter of a disc, is a third of the side (rounded down) times the fog coefficient; it blurs by hw // 10 pixels.
_DIAMETER = 74
_MOST = _DIAMETER // 10
# How far from the centre of the image discs can lie, across and down, in diameters.
_NEAR, _FAR = (1.5, 0.5), (3.0, 2.0)


def _draw_fog(shape: Shape, params: Params, rng: CounterRng) -> Haze:
    rng = rng.on_cpu()
    offsets = rng.uniforms("offsets", 3 * _MOST, 2).to(torch.float64).mul(2).sub(1)
    return Haze(rng.uniforms("density", 1)[:, 0].to(torch.float64), offsets)


def _fog(images: Tensor, params: Params, draw: Haze) -> Tensor:
    height, width = images.shape[-2:]
    scale = _scale(height, width)
    density = span(draw.density, params["density_low"], params["density_high"])
    diameter = (_DIAMETER * density).floor()
    count = (diameter / 10).floor()
    spread = torch.tensor([_NEAR] * _MOST + [_FAR] * (2 * _MOST), dtype=torch.float64)
    axes = torch.tensor([width, height], dtype=torch.float64)
    centres = (axes - 1) / 2 + draw.offsets * spread * diameter[:, None, None] * axes / 224
    rank = torch.cat([torch.arange(_MOST), torch.arange(2 * _MOST, dtype=torch.float32) / 2])
    radii = torch.where(rank < count[:, None], (diameter / 2).floor()[:, None] * scale, -1.0)
    centres, radii = (to_device(values, images.device, torch.float32) for values in (centres, radii))
    covers = disc_counts(centres, radii, height, width)
    clear = torch.pow(1 - per_image(params["opacity"] * density, images), covers)
    images = images.sub_(1).mul_(clear).add_(1)
    radius = (count * scale - 1).clamp(min=0) / 2 * params["blur"]
    return box_blur(images, radius, largest=max(0.0, _MOST * scale - 1) / 2).add_(HALF_LEVEL)


class Drops(NamedTuple):
    """Where drops start, (B, N, 2), and how much room is left beside them, (B, 1): uniform in (0, 1)."""

    start: Tensor
    room: Tensor


# The reference at 224 pixels: strokes of this many rows and one column, one for each 600 pixels.
_DROP_ROWS, _DROP_SLANT, _DROP_AREA, _DROP_BLUR = 21, 10, 600, 7
_DROP_LEVEL = 200 / 255


def _drop_shape(height: int, width: int) -> tuple[int, int, int]:
    """How long and how thick drops are, and how many cover the published share of the image."""
    scale = _scale(height, width)
    thickness = max(1, round(scale))
    return max(1, round(_DROP_ROWS * scale)), thickness, max(1, int(height * width / (_DROP_AREA * scale * thickness)))


def _draw_rain(shape: Shape, params: Params, rng: CounterRng) -> Drops:
    count = _drop_shape(shape.height, shape.width)[2]
    return Drops(rng.uniforms("start", count, 2), rng.uniforms("room", 1))


def _rain(images: Tensor, params: Params, draw: Drops) -> Tensor:
    height, width = images.shape[-2:]
    scale = _scale(height, width)
    length, thickness, count = _drop_shape(height, width)
    # The reference draws a slant, keeps room for it on one side, and then slants all drops by the most.
    room = (draw.room * 2 - 1).mul_(_DROP_SLANT).trunc_().mul_(scale).round_()
    x = (draw.start[..., 0] * (width + 1 - room.abs())).floor_().add_(room.clamp(max=0))
    y = (draw.start[..., 1] * max(1, height - length + 2)).floor_()
    drawn = torch.arange(count, device=images.device) < per_image(params["drops"] * count, images).view(-1, 1)
    mask = stroke_mask(torch.stack([x, y], dim=-1), _DROP_SLANT * scale, drawn, length, thickness, (height, width))
    images = images.sub_(_DROP_LEVEL).mul_(1 - mask).add_(_DROP_LEVEL)
    largest = max(0.0, _DROP_BLUR * scale - 1) / 2
    images = box_blur(images, largest * params["blur"], largest=largest)
    return relit(_rounded_to_levels(images), per_image(params["light"], images)).add_(HALF_LEVEL)


class Shadows(NamedTuple):
    """Vertices in (0, 1), (B, 4, 8, 2), and how many of the four polygons are there, (B, 1); on the CPU."""

    vertices: Tensor
    number: Tensor


_FEWEST_SHADOWS, _MOST_SHADOWS, _VERTICES = 2, 4, 8


def _draw_shadow(shape: Shape, params: Params, rng: CounterRng) -> Shadows:
    rng = rng.on_cpu()
    vertices = rng.uniforms("vertices", _MOST_SHADOWS, _VERTICES, 2).to(torch.float64)
    return Shadows(vertices, rng.integers("count", 1, high=_MOST_SHADOWS - _FEWEST_SHADOWS + 1) + _FEWEST_SHADOWS)


def _shadow(images: Tensor, params: Params, draw: Shadows) -> Tensor:
    height, width = images.shape[-2:]
    vertices = (draw.vertices * torch.tensor([width + 1, height + 1])).floor()
    mask = polygon_union(vertices, torch.arange(_MOST_SHADOWS) < draw.number, height, width, images.device)
    images = _rounded_to_levels(images)
    return torch.where(mask, relit(images, per_image(params["light"], images)), images).add_(HALF_LEVEL)


def _draw_snow(shape: Shape, params: Params, rng: CounterRng) -> Field:
    """The rank of the snow point of each image, uniform in (0, 1)."""
    return Field(rng.uniforms("point", 1, 1, 1))


def _snow(images: Tensor, params: Params, draw: Field) -> Tensor:
    point = span(draw.field, per_image(params["point_low"], images), per_image(params["point_high"], images))
    images = _rounded_to_levels(images)
    # A snow point of 0 is a third of white, and 1 five sixths.
    dark = lightness(images) < point / 2 + 1 / 3
    return torch.where(dark, relit(images, per_image(params["gain"], images)), images).add_(HALF_LEVEL)


class Flare(NamedTuple):
    """The sun, and up to ten reflections on a line through it; uniform in (0, 1) unless said otherwise, on the CPU."""

    sun: Tensor  # (B, 2): x, y
    angle: Tensor  # (B, 1)
    number: Tensor  # (B, 1), 6 … 10
    position: Tensor  # (B, 10)
    large: Tensor  # (B, 10), 0 or 1
    opacity: Tensor  # (B, 10)
    colour: Tensor  # (B, 10, 3)


_RINGS, _RADIUS = 20, 200
_FEWEST_REFLECTIONS, _MOST_REFLECTIONS = 6, 10
_SMALL_RADIUS, _LARGE_RADIUS, _REFLECTION_STEP, _COLOUR_RANGE = 1, 8, 10, 50


def _draw_flare(shape: Shape, params: Params, rng: CounterRng) -> Flare:
    rng = rng.on_cpu()
    many = _MOST_REFLECTIONS
    return Flare(
        sun=rng.uniforms("sun", 2).to(torch.float64),
        angle=rng.uniforms("angle", 1).to(torch.float64),
        number=rng.integers("count", 1, high=many - _FEWEST_REFLECTIONS + 1) + _FEWEST_REFLECTIONS,
        position=rng.uniforms("place", many).to(torch.float64),
        large=rng.integers("large", many, high=2),
        opacity=rng.uniforms("opacity", many).to(torch.float64),
        colour=rng.uniforms("colour", many, 3).to(torch.float64),
    )


@lru_cache(maxsize=8)
def _glare(device: torch.device) -> Tensor:
    """What each level becomes in each ring, from the innermost to the outside, (21 · 256,), in levels.

    The reference paints ever larger white discs over what the last left, with ever less opacity, and rounds each time.
    """
    levels = torch.arange(256, dtype=torch.float64).repeat(_RINGS + 1, 1)
    for disc in range(_RINGS):
        opacity = (1 - disc / (_RINGS - 1)) ** 3
        levels[: disc + 1] = (255 * opacity + levels[: disc + 1] * (1 - opacity)).round_()
    return levels.flatten().to(device, torch.float32)


def _reflections(images: Tensor, params: Params, draw: Flare, sun: Tensor) -> Tensor:
    height, width = images.shape[-2:]
    scale, device = _scale(height, width), images.device
    step = _REFLECTION_STEP * width / 224
    x = (draw.position * math.ceil(width / step)).floor() * step
    y = sun[:, 1:] - torch.tan(2 * math.pi * draw.angle) * (x - sun[:, :1])
    # Far outside it does not matter how far.
    centres = torch.stack([x, y.clamp(-2 * height, 3 * height)], dim=-1).trunc()
    radii = torch.where(draw.large > 0, _LARGE_RADIUS, _SMALL_RADIUS) * scale
    exists = torch.arange(_MOST_REFLECTIONS) < draw.number
    faintest, strongest = torch.tensor([0.05, 0.2], dtype=torch.float32)
    opacity = torch.where(exists, span(draw.opacity, faintest, strongest), 0.0)
    # Each is painted again with all that follow.
    kept = (1 - opacity).flip(1).cumprod(1).flip(1)
    opacity = (1 - kept) * exists * params["reflections"][:, None]
    colours = 1 - draw.colour[..., : images.shape[1]] * (_COLOUR_RANGE / 255)
    centres, radii, colours, opacity = (to_device(x, device, torch.float32) for x in (centres, radii, colours, opacity))
    return paint_discs(images, centres, radii, colours, opacity, reach=math.ceil(_LARGE_RADIUS * scale))


def _flare(images: Tensor, params: Params, draw: Flare) -> Tensor:
    height, width = images.shape[-2:]
    sun = (draw.sun * torch.tensor([width, height / 2], dtype=torch.float32)).floor()
    images = _reflections(images, params, draw, sun)
    radius = per_image(params["radius"] / _RADIUS * _scale(height, width), images)
    apart = distances(to_device(sun, images.device, torch.float32), height, width).div_(radius)
    rims = torch.linspace(1, _RADIUS, _RINGS, dtype=torch.float64).floor().to(torch.float32)
    ring = torch.bucketize(apart, to_device(rims, images.device), out_int32=True)
    entries = images.mul_(255).add_(0.5).to(torch.int32).add_(ring, alpha=256)
    return _glare(images.device).index_select(0, entries.flatten()).view_as(images).mul_(1 / 255)


WEATHER: tuple[Corruption, ...] = (
    unit(
        name="syn2nat:random_fog",
        description="Faint white discs all over a blurred image, a fog coefficient of 0.8 to 1; "
        "lower severities thin them out and blur less.",
        table=SeverityTable.linear(density_low=(0.8, 0.8), density_high=(1, 1), opacity=(0, 0.08), blur=(0, 1)),
        draw=_draw_fog,
        apply=_fog,
    ),
    unit(
        name="syn2nat:random_rain",
        description="Gray strokes over a blurred and darkened image; "
        "lower severities draw fewer, blur less and darken less.",
        table=SeverityTable.linear(drops=(0, 1), blur=(0, 1), light=(1, 0.7)),
        draw=_draw_rain,
        apply=_rain,
    ),
    unit(
        name="syn2nat:random_shadow",
        description="Two to four polygons of eight random corners at half the lightness; lower severities darken less.",
        table=SeverityTable.linear(light=(1, 0.5)),
        draw=_draw_shadow,
        apply=_shadow,
    ),
    unit(
        name="syn2nat:random_snow",
        description="Multiplies the lightness of all that is darker than a random bound by 2.5; "
        "lower severities by less.",
        table=SeverityTable.linear(point_low=(0.1, 0.1), point_high=(0.3, 0.3), gain=(1, 2.5)),
        draw=_draw_snow,
        apply=_snow,
    ),
    unit(
        name="syn2nat:random_sun_flare",
        description="A white sun with a halo of 200 pixels in the upper half and faint reflections on a line through "
        "it; lower severities have a smaller halo and fainter reflections.",
        table=SeverityTable.linear(radius=(0, 200), reflections=(0, 1)),
        draw=_draw_flare,
        apply=_flare,
    ),
)
