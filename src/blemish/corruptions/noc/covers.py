"""ImageNet-NOC's obstruction and border, which hide a part of the image."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import AtOnce, Corruption, Numbers, quantise, side_scale
from blemish.corruptions.draws import Field
from blemish.corruptions.moves import by_map
from blemish.corruptions.noc.published import FIGURE_5, FIGURE_6, unit
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.positions import Positions, in_place
from blemish.ops.stamps import pixels_between


class Square(NamedTuple):
    """Where a square lies, (B, 2) on the CPU: down and right in the room it has; its gray, (B, 1, 1, 1)."""

    position: Tensor
    gray: Tensor


def _draw_square(shape: Shape, params: Params, rng: CounterRng) -> Square:
    return Square(rng.on_cpu().uniforms("place", 2).to(torch.float64), rng.uniforms("gray", 1, 1, 1))


def _whole_pixels(lengths: Tensor, scale: float) -> Tensor:
    """Published lengths in the pixels of an image; halves go up."""
    return (lengths * scale + 0.5).floor()


def _hidden(size: Tensor, position: Tensor, height: int, width: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The bounds of the square that is hidden: top, bottom, left and right."""
    size = _whole_pixels(size, side_scale(height, width))
    top, left = ((position[:, i] * (side - size + 1)).floor() for i, side in enumerate((height, width)))
    return top, top + size, left, left + size


def _under_square(images: Tensor, params: Params, draw: Square) -> Tensor:
    """Which pixels are hidden, (B, 1, H, W)."""
    height, width = images.shape[-2:]
    top, bottom, left, right = _hidden(params["size"], draw.position, height, width)
    rows = pixels_between(top, bottom, height, images.device)[:, None, :, None]
    columns = pixels_between(left, right, width, images.device)[:, None, None, :]
    return rows & columns


def _obstruction(images: Tensor, params: Params, draw: Square) -> Tensor:
    return torch.where(_under_square(images, params, draw), draw.gray, images)


def _around_square(images: Tensor, params: Params, draw: Square) -> Positions:
    return in_place(images, ~_under_square(images, params, draw)[:, 0])


def _make_obstruction(kernels: Any, levels: Any, out: Any, params: Numbers, rng: CounterRng) -> None:
    draw = _draw_square(Shape(*levels.shape[1:]), {}, rng.on_cpu())
    bounds = _hidden(torch.from_numpy(params["size"]), draw.position, *levels.shape[-2:])
    kernels.rectangles(
        levels, out, torch.stack(bounds, dim=1)[:, None].to(torch.int32).numpy(), _levels(draw.gray), True
    )


def _levels(gray: Tensor) -> NDArray[np.uint8]:
    """The level of each gray value."""
    return quantise(gray.clone()).flatten().numpy()


def _draw_gray(shape: Shape, params: Params, rng: CounterRng) -> Field:
    """A gray value for each image."""
    return Field(rng.uniforms("gray", 1, 1, 1))


def _within(images: Tensor, params: Params) -> Tensor:
    """Which pixels the border leaves, (B, 1, H, W)."""
    height, width = images.shape[-2:]
    thickness = _whole_pixels(params["thickness"], side_scale(height, width))
    rows = pixels_between(thickness, height - thickness, height, images.device)[:, None, :, None]
    columns = pixels_between(thickness, width - thickness, width, images.device)[:, None, None, :]
    return rows & columns


def _border(images: Tensor, params: Params, draw: Field) -> Tensor:
    return torch.where(_within(images, params), images, draw.field)


def _inside_border(images: Tensor, params: Params, draw: Field) -> Positions:
    return in_place(images, _within(images, params)[:, 0])


def _make_border(kernels: Any, levels: Any, out: Any, params: Numbers, rng: CounterRng) -> None:
    (gray,) = _draw_gray(Shape(*levels.shape[1:]), {}, rng.on_cpu())
    height, width = levels.shape[-2:]
    thickness = _whole_pixels(torch.from_numpy(params["thickness"]), side_scale(height, width))
    bounds = torch.stack([thickness, height - thickness, thickness, width - thickness], dim=1)[:, None]
    kernels.rectangles(levels, out, bounds.to(torch.int32).numpy(), _levels(gray), False)


COVERS: tuple[Corruption, ...] = (
    unit(
        name="noc:obstruction",
        description="Hides a square part of the image.",
        table=SeverityTable.between(size=(0, 47, 125)),
        draw=_draw_square,
        apply=_obstruction,
        moves=by_map(_around_square),
        at_once=AtOnce("lookup", _make_obstruction),
        source=FIGURE_5,
    ),
    unit(
        name="noc:border",
        description="Hides the image's border.",
        table=SeverityTable.between(thickness=(0, 9, 46)),
        draw=_draw_gray,
        apply=_border,
        moves=by_map(_inside_border),
        at_once=AtOnce("lookup", _make_border),
        source=FIGURE_6,
    ),
)
