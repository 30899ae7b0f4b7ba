"""C̄'s candidates that move pixels: fish eyes, a water drop, quadrilaterals and perspectives."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption
from blemish.corruptions.cbar.candidates.published import scanned, unit
from blemish.corruptions.cbar.published import as_bytes, by_magnitude, float64_per_image, pixel_axes, uniform
from blemish.corruptions.draws import signs
from blemish.corruptions.moves import A_LITTLE, by_map
from blemish.corruptions.severity import Params
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.positions import Positions, pixel_places
from blemish.ops.transfer import to_device
from blemish.ops.warp import bilinear


class Lenses(NamedTuple):
    """Points in the image, row and column in pixels, float64 (B, n, 2)."""

    centres: Tensor


_LENSES = 501
_LENS_RADIUS, _SMALLEST_LENS = 0.05, 3.0  # parts of the side; pixels


def _draw_lenses(shape: Shape, params: Params, rng: CounterRng) -> Lenses:
    sides = torch.tensor([shape.height, shape.width], dtype=torch.float64)
    return Lenses(uniform(rng, "centres", 0, 1, _LENSES, 2) * to_device(sides, rng.device))


def _through_glass(offset: Tensor, depth: Tensor, bent: Tensor) -> Tensor:
    """How far from a lens's centre a ray ends that meets its surface so far from it, along one axis.

    By Snell's law o − d · tan(a − asin(sin(a) / n)) with tan(a) = o / d. Without angles that is o · h² / (s · d + o²),
    where h² = o² + d² and s² = n² · h² − o². ``bent`` is n², the square of the glass's index.
    """
    across = offset * offset
    slant = across + depth * depth
    return offset * slant / ((bent * slant - across).sqrt_() * depth + across)


def _fish_eye(images: Tensor, params: Params, draw: Lenses) -> Tensor:
    """Half balls of glass, one after the other, each over the image that the others have left."""
    channels, height, width = images.shape[1:]
    radius = max(_LENS_RADIUS * min(height, width), _SMALLEST_LENS)
    kernels = compiled("doubles") if images.device.type == "cpu" else None
    if kernels is not None:
        running = F.pad(images.permute(0, 2, 3, 1), (0, 4 - channels)).to(torch.float32)
        shared_out(kernels.lenses, [running, draw.centres.contiguous(), params["index"]], radius)
        return as_bytes(running[..., :channels].permute(0, 3, 1, 2).contiguous())
    bent = float64_per_image(params, "index", images).flatten(1, 2).square()
    step = torch.arange(math.ceil(2 * radius) + 1, dtype=torch.float64, device=images.device)
    flat = torch.cat([images.flatten(2), images.new_zeros(len(images), channels, 1)], dim=2).to(torch.float32)
    for number in range(draw.centres.shape[1]):
        centre_y, centre_x = draw.centres[:, number, :, None, None].unbind(1)
        rows, columns = (centre_y - radius).ceil() + step[:, None], (centre_x - radius).ceil() + step
        down, right = rows - centre_y, columns - centre_x
        square = radius * radius - (down * down + right * right)
        depth = square.clamp(min=1e-12).sqrt_()
        y, x = (centre + _through_glass(axis, depth, bent) for centre, axis in ((centre_y, down), (centre_x, right)))
        running = flat[..., :-1].view(-1, channels, height, width)
        seen = bilinear(running, y, x).to(torch.float32).flatten(2)
        covered = (square > 0) & (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        places = torch.where(covered, rows * width + columns, height * width).to(torch.int64).flatten(1)
        flat.scatter_(2, places[:, None].expand_as(seen), seen)
    return as_bytes(flat[..., :-1].reshape(images.shape))


class Drop(NamedTuple):
    """Where a drop fell, row and column, and the length of its waves, in pixels; their phase. Float64 (B, 1, 1)."""

    row: Tensor
    column: Tensor
    length: Tensor
    phase: Tensor


def _draw_drop(shape: Shape, params: Params, rng: CounterRng) -> Drop:
    return Drop(
        uniform(rng, "row", 0.25, 0.75, 1, 1) * shape.height,
        uniform(rng, "place", 0.25, 0.75, 1, 1) * shape.width,
        uniform(rng, "length", 0.05, 0.2, 1, 1) * min(shape.height, shape.width),
        uniform(rng, "phase", 0, 2 * math.pi, 1, 1),
    )


def _rings(images: Tensor, params: Params, draw: Drop) -> tuple[Tensor, Tensor]:
    """Waves within half a side of the centre: the rows and columns that pixels come from, (B, H, W)."""
    rows, columns = pixel_axes(images)
    down, right = rows - draw.row, columns - draw.column
    distance = (down * down + right * right).sqrt_()
    wave = (distance * (2 * math.pi) / draw.length - draw.phase).sin_()
    move = wave.mul_(draw.length * float64_per_image(params, "amplitude", images).flatten(1, 2))
    share = torch.where(distance < min(images.shape[-2:]) // 2, move / distance.clamp(min=1e-9), 0)
    return rows + share * down, columns + share * right


def _water_drop(images: Tensor, params: Params, draw: Drop) -> Tensor:
    return as_bytes(bilinear(images, *_rings(images, params, draw)))


def _through_rings(images: Tensor, params: Params, draw: Drop) -> Positions:
    rows, columns = _rings(images, params, draw)
    return Positions(columns, rows)


def _over_original(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The image at places in pixels from its corner, as Pillow samples it; where they lie outside, as it was."""
    height, width = images.shape[-2:]
    seen = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    y, x = (rows - 0.5).clamp_(0, height - 1), (columns - 0.5).clamp_(0, width - 1)
    return torch.where(seen.unsqueeze(1), as_bytes(bilinear(images, y, x)), images)


def _where_seen(images: Tensor, rows: Tensor, columns: Tensor) -> Positions:
    """Where places lie outside, a pixel shows its own, which is also seen elsewhere, or would be."""
    height, width = images.shape[-2:]
    seen = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    x, y = pixel_places(len(images), height, width)
    return Positions(
        torch.where(seen, columns - 0.5, x),
        torch.where(seen, rows - 0.5, y),
        "replicate",
        copies=~seen,
    )


class Corners(NamedTuple):
    """Where each corner goes, in −1 … 1, down the left side and up the right: x and y, float64 (B, 4, 2)."""

    moves: Tensor


def _draw_corners(shape: Shape, params: Params, rng: CounterRng) -> Corners:
    return Corners(uniform(rng, "corners", -1, 1, 4, 2))


def _stretched(images: Tensor, params: Params, draw: Corners) -> tuple[Tensor, Tensor]:
    """The rows and columns that the quadrilateral between moved corners has at each pixel, (B, H, W)."""
    height, width = images.shape[-2:]
    reach = float64_per_image(params, "reach", images).flatten(1, 2) * min(height, width)
    square = torch.tensor([[0, 0], [0, height], [width, height], [width, 0]], dtype=torch.float64)
    corners = (to_device(square, images.device) + draw.moves * reach)[..., None, None]
    rows, columns = pixel_axes(images)
    down, right = (rows + 0.5) / height, (columns + 0.5) / width
    x, y = (
        (first * (1 - down) + second * down) * (1 - right) + (fourth * (1 - down) + third * down) * right
        for first, second, third, fourth in (corners[:, :, axis].unbind(1) for axis in (0, 1))
    )
    return y, x


def _quadrilateral(images: Tensor, params: Params, draw: Corners) -> Tensor:
    return _over_original(images, *_stretched(images, params, draw))


def _in_quadrilateral(images: Tensor, params: Params, draw: Corners) -> Positions:
    return _where_seen(images, *_stretched(images, params, draw))


class Signs(NamedTuple):
    """+1 or −1 for offset, shift and factor, each of x and of y; float64 (B, 6, 1, 1)."""

    signs: Tensor


def _draw_signs(shape: Shape, params: Params, rng: CounterRng) -> Signs:
    return Signs(signs(rng, "signs", 6, 1, 1).to(torch.float64))


def _in_view(images: Tensor, params: Params, draw: Signs) -> tuple[Tensor, Tensor]:
    """The rows and columns that the perspective has at each pixel, (B, H, W)."""
    side = min(images.shape[-2:])
    offset, shift, power, denominator = (
        float64_per_image(params, name, images).flatten(1, 2) for name in ("offset", "shift", "power", "denominator")
    )
    offset_x, offset_y, shift_x, shift_y, power_x, power_y = draw.signs.unbind(1)
    rows, columns = (axis + 0.5 for axis in pixel_axes(images))
    below = (denominator / side) * (columns + rows) + 1
    x = (2 ** (power_x * power)) * columns + offset_x * offset * rows + shift_x * shift * side
    y = offset_y * offset * columns + (2 ** (power_y * power)) * rows + shift_y * shift * side
    return y / below, x / below


def _perspective(images: Tensor, params: Params, draw: Signs) -> Tensor:
    return _over_original(images, *_in_view(images, params, draw))


def _in_perspective(images: Tensor, params: Params, draw: Signs) -> Positions:
    return _where_seen(images, *_in_view(images, params, draw))


WARPS: tuple[Corruption, ...] = (
    unit(
        name="cbar:fish_eye",
        description="Covers the image with half balls of glass. Unverified.",
        table=by_magnitude(imagenet=scanned(0, 4), cifar=scanned(0, 1), index=(1, lambda m: 0.2 * m + 1)),
        draw=_draw_lenses,
        apply=_fish_eye,
        moves=A_LITTLE,
        uint8_io=True,
    ),
    unit(
        name="cbar:water_drop",
        description="Shows the image through the rings of a drop that fell into water. Unverified.",
        table=by_magnitude(imagenet=scanned(5, 10), cifar=scanned(2, 10), amplitude=(0, lambda m: 0.025 * m)),
        draw=_draw_drop,
        apply=_water_drop,
        moves=by_map(_through_rings),
        uint8_io=True,
    ),
    unit(
        name="cbar:quadrilateral_no_bars",
        description="Stretches a quadrilateral of the image over the image. Unverified.",
        table=by_magnitude(imagenet=scanned(0, 10), cifar=scanned(0, 10), reach=(0, lambda m: m / 30)),
        draw=_draw_corners,
        apply=_quadrilateral,
        moves=by_map(_in_quadrilateral),
        uint8_io=True,
    ),
    unit(
        name="cbar:perspective_no_bars",
        description="Shows the image in another perspective, over itself. Unverified.",
        table=by_magnitude(
            imagenet=scanned(0, 10),
            cifar=scanned(0, 10),
            offset=(0, lambda m: 0.01 * m),
            shift=(0, lambda m: 0.01 * m),
            power=(0, lambda m: 0.015 * m),
            denominator=(0, lambda m: 0.02 * m),
        ),
        draw=_draw_signs,
        apply=_perspective,
        moves=by_map(_in_perspective),
        uint8_io=True,
    ),
)
