"""ImageNet-NOC's geometric changes: translation, shear, elastic and rotation. What comes from outside is black."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption
from blemish.corruptions.draws import signs
from blemish.corruptions.moves import by_map
from blemish.corruptions.noc.published import FIGURE_6, unit
from blemish.corruptions.severity import PUBLISHED_SIDE, Params, SeverityTable
from blemish.ops.positions import Positions, from_map, pixel_places
from blemish.ops.transfer import to_device
from blemish.ops.warp import sample_map


class Signs(NamedTuple):
    """+1 or −1 for each direction that is chosen, float64 (B, n) on the CPU."""

    signs: Tensor


def _draw_sign(shape: Shape, params: Params, rng: CounterRng) -> Signs:
    return Signs(signs(rng.on_cpu(), "signs", 1).to(torch.float64))


def _draw_signs(shape: Shape, params: Params, rng: CounterRng) -> Signs:
    return Signs(signs(rng.on_cpu(), "signs", 2).to(torch.float64))


def _matrices(rows: list[list[Tensor | float]], like: Tensor) -> Tensor:
    """Per-image 2 × 3 matrices, float64, of entries that are one number or one per image."""
    entries = [torch.as_tensor(entry, dtype=torch.float64).expand_as(like) for row in rows for entry in row]
    return torch.stack(entries, dim=-1).view(-1, 2, 3)


def _about_centre(a: Tensor, b: Tensor, c: Tensor, d: Tensor, height: int, width: int) -> Tensor:
    """The maps [[a, b], [c, d]] of the plane, given per image, that leave the image's centre in place."""
    x, y = (width - 1) / 2, (height - 1) / 2
    return _matrices([[a, b, x - a * x - b * y], [c, d, y - c * x - d * y]], a)


def _moved(images: Tensor, params: Params, draw: Signs) -> Tensor:
    """By whole pixels, and by the same part of each side."""
    height, width = images.shape[-2:]
    down, right = ((params["distance"] * side / PUBLISHED_SIDE + 0.5).floor() for side in (height, width))
    return _matrices([[1, 0, -draw.signs[:, 1] * right], [0, 1, -draw.signs[:, 0] * down]], right)


def _translation(images: Tensor, params: Params, draw: Signs) -> Tensor:
    return sample_map(images, _moved(images, params, draw), outside="zeros", nearest=True)


def _translated(images: Tensor, params: Params, draw: Signs) -> Positions:
    return from_map(images, _moved(images, params, draw), "zeros", whole=True)


def _row_moves(images: Tensor, params: Params, draw: Signs) -> Tensor:
    """How far to the right each row looks, (B, H): whole pixels, the nearest number to its share."""
    height, width = images.shape[-2:]
    slope = torch.tan(torch.deg2rad(params["degrees"])) * draw.signs[:, 0]
    moves = (slope[:, None] * (torch.arange(height, dtype=torch.float64) - (height - 1) / 2) + 0.5).floor()
    return moves.clamp(-width, width)  # further than its width, a row is gone


def _sheared(images: Tensor, params: Params, draw: Signs) -> Positions:
    x, y = pixel_places(len(images), *images.shape[-2:])
    return Positions(x + _row_moves(images, params, draw)[..., None], y, whole=True)


def _shear(images: Tensor, params: Params, draw: Signs) -> Tensor:
    width = images.shape[-1]
    moves = to_device(_row_moves(images, params, draw), images.device, torch.int64)[:, None, :, None]
    source = torch.arange(width, device=images.device) + moves
    inside = (source >= 0) & (source < width)
    return images.gather(3, source.clamp_(0, width - 1).expand_as(images)).mul_(inside)


def _turn(images: Tensor, params: Params, draw: Signs) -> Tensor:
    angle = torch.deg2rad(params["degrees"]) * draw.signs[:, 0]
    cos, sin = angle.cos(), angle.sin()
    return _about_centre(cos, sin, -sin, cos, *images.shape[-2:])


def _rotation(images: Tensor, params: Params, draw: Signs) -> Tensor:
    return sample_map(images, _turn(images, params, draw), outside="zeros")


def _turned(images: Tensor, params: Params, draw: Signs) -> Positions:
    return from_map(images, _turn(images, params, draw), "zeros")


class Cut(NamedTuple):
    """Which side is cropped, the width or the height, and at which end; bool (B,) on the CPU."""

    width: Tensor
    first: Tensor


def _draw_cut(shape: Shape, params: Params, rng: CounterRng) -> Cut:
    choices = rng.on_cpu().integers("cut", 2, high=2) == 1
    return Cut(choices[:, 0], choices[:, 1])


def _stretch(images: Tensor, params: Params, draw: Cut) -> Tensor:
    """Pixels as squares: the rest of the side is stretched to all of it, edges onto edges."""
    height, width = images.shape[-2:]
    cropped = params["cropped"] / PUBLISHED_SIDE
    across, down = ((cropped * chosen).to(torch.float64) for chosen in (draw.width, ~draw.width))
    rows: list[list[Tensor | float]] = [
        [1 - across, 0, (across * draw.first) * width - across / 2],
        [0, 1 - down, (down * draw.first) * height - down / 2],
    ]
    return _matrices(rows, across)


def _elastic(images: Tensor, params: Params, draw: Cut) -> Tensor:
    return sample_map(images, _stretch(images, params, draw), outside="replicate")


def _stretched(images: Tensor, params: Params, draw: Cut) -> Positions:
    return from_map(images, _stretch(images, params, draw), "replicate")


GEOMETRY: tuple[Corruption, ...] = (
    unit(
        name="noc:translation",
        description="Moves the image sideways and up or down.",
        table=SeverityTable.between(distance=(0, 15, 62)),
        draw=_draw_signs,
        apply=_translation,
        moves=by_map(_translated),
        source=FIGURE_6,
    ),
    # The figure prints one number, 0.39. The authors' released settings are 12 to 39 degrees, and 39 degrees move the
    # first row by tan(39°) / 2 = 0.40 of the height.
    unit(
        name="noc:shear",
        description="Slants the image to the left or to the right.",
        table=SeverityTable.between(degrees=(0, 12, 39)),
        draw=_draw_sign,
        apply=_shear,
        moves=by_map(_sheared),
        source=FIGURE_6,
        version=2,
    ),
    unit(
        name="noc:elastic",
        description="Crops the height or the width and stretches the rest to fill the image.",
        table=SeverityTable.between(cropped=(0, 44, 110)),
        draw=_draw_cut,
        apply=_elastic,
        moves=by_map(_stretched),
        source=FIGURE_6,
    ),
    unit(
        name="noc:rotation",
        description="Turns the image about its centre, clockwise or anticlockwise.",
        table=SeverityTable.between(degrees=(0, 7, 50)),
        draw=_draw_sign,
        apply=_rotation,
        moves=by_map(_turned),
        source=FIGURE_6,
    ),
)
