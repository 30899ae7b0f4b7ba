"""Syn2Nat's candidates that hide, flip or shuffle parts of the image.

Pixels are those of images of 224 × 224 and grow with the shorter side.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import AtOnce, Corruption, Numbers, side_scale
from blemish.corruptions.draws import by_level
from blemish.corruptions.severity import Params, SeverityTable
from blemish.corruptions.syn2nat.published import SOURCE
from blemish.ops.colour import LUMINANCE
from blemish.ops.stamps import pixels_between
from blemish.ops.transfer import to_device

__all__ = ["OCCLUSIONS"]

_FEWEST_HOLES, _MOST_HOLES = 16, 48
_HOLE_SIDE = 8
_CUTOUT_SIDE = 150
_TILES = 4


def _border(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """Black but for the middle, whose sides are a share of the image's."""
    height, width = levels.shape[-2:]
    rows, columns = (_middle(params["kept"], size, levels.device) for size in (height, width))
    return levels * (rows.view(-1, 1, height, 1) & columns.view(-1, 1, 1, width))


def _middle(share: Tensor, size: int, device: torch.device) -> Tensor:
    """Which of `size` pixels belong to a share of them in the middle, (B, size)."""
    return pixels_between(*_bounds(share, size), size, device)


def _bounds(share: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """The first pixel of a share in the middle, and the first behind it."""
    kept = (share * size).round()
    start = ((size - kept) / 2).floor()
    return start, start + kept


def _make_border(kernels: Any, levels: Any, out: Any, params: Numbers, rng: CounterRng) -> None:
    kept = torch.from_numpy(params["kept"])
    bounds = torch.stack([bound for size in levels.shape[-2:] for bound in _bounds(kept, size)], dim=1)[:, None]
    kernels.rectangles(levels, out, bounds.to(torch.int32).numpy(), np.zeros(len(levels), np.int32), False)


class Holes(NamedTuple):
    """Rectangles of pixels, each bound (B, n) float64 on the CPU; the last rows and columns are not part of them."""

    top: Tensor
    bottom: Tensor
    left: Tensor
    right: Tensor


def _make_holes(
    kernels: Any,
    levels: Any,
    out: Any,
    params: Numbers,
    rng: CounterRng,
    *,
    draw: Callable[[Shape, Params, CounterRng], Holes],
) -> None:
    known = {name: torch.from_numpy(values) for name, values in params.items()}
    bounds = torch.stack(draw(Shape(*levels.shape[1:]), known, rng), dim=2)
    kernels.rectangles(levels, out, bounds.to(torch.int32).numpy(), np.zeros(len(levels), np.int32), True)


def _cut(levels: Tensor, params: Params, draw: Holes) -> Tensor:
    height, width = levels.shape[-2:]
    rows = pixels_between(draw.top, draw.bottom, height, levels.device).to(torch.float32)
    columns = pixels_between(draw.left, draw.right, width, levels.device).to(torch.float32)
    # The number of holes over each pixel, exact in any precision.
    holes = rows.transpose(1, 2) @ columns
    return levels * (holes == 0)[:, None]


def _draw_coarse_dropout(shape: Shape, params: Params, rng: CounterRng) -> Holes:
    """Squares anywhere inside the image, which may overlap."""
    rng = rng.on_cpu()
    side = max(1, round(_HOLE_SIDE * side_scale(shape.height, shape.width)))
    count = _FEWEST_HOLES + rng.integers("count", 1, high=_MOST_HOLES - _FEWEST_HOLES + 1)
    used = torch.arange(_MOST_HOLES) < (count * params["share"][:, None]).round()
    room = torch.tensor([shape.height - side + 1, shape.width - side + 1], dtype=torch.float64)
    top, left = (rng.uniforms("place", _MOST_HOLES, 2).to(torch.float64) * room).floor().unbind(2)
    return Holes(top, top + side * used, left, left + side)


def _draw_cutout(shape: Shape, params: Params, rng: CounterRng) -> Holes:
    """A square about a point anywhere in the image: pushed in at the left and top, cut off at the right and bottom."""
    side = (params["side"] * side_scale(shape.height, shape.width)).round()[:, None]
    size = torch.tensor([shape.height, shape.width], dtype=torch.float64)
    centre = (rng.on_cpu().uniforms("centre", 2).to(torch.float64) * (size + 1)).floor()
    corner = (centre - (side / 2).floor()).clamp(min=0)
    top, left = corner[:, :1], corner[:, 1:]
    return Holes(top, top + side, left, left + side)


class Channel(NamedTuple):
    """Which of red, green and blue, (B,) int64 on the CPU."""

    dropped: Tensor


def _draw_channel(shape: Shape, params: Params, rng: CounterRng) -> Channel:
    return Channel(rng.on_cpu().integers("channel", 1, high=3)[:, 0])


def _drop_channel(levels: Tensor, params: Params, draw: Channel) -> Tensor:
    """A gray image loses the channel's share of its luminance, as if it had been coloured and gray again."""
    if levels.shape[1] == 3:
        kept = draw.dropped[:, None] != torch.arange(3)
        return levels * to_device(kept, levels.device).view(-1, 3, 1, 1)
    share = to_device(1 - torch.tensor(LUMINANCE, dtype=torch.float32)[draw.dropped], levels.device).view(-1, 1, 1, 1)
    return (levels * share).add_(0.5).to(torch.uint8)


class Flips(NamedTuple):
    """Whether the image is turned upside down, and whether left to right, (B,) bool on the CPU; never neither."""

    vertical: Tensor
    horizontal: Tensor


def _draw_flips(shape: Shape, params: Params, rng: CounterRng) -> Flips:
    way = rng.on_cpu().integers("way", 1, high=3)[:, 0]
    return Flips(way != 0, way != 1)


def _flip(levels: Tensor, params: Params, draw: Flips) -> Tensor:
    vertical, horizontal = (to_device(choice, levels.device).view(-1, 1, 1, 1) for choice in draw)
    levels = torch.where(vertical, levels.flip(-2), levels)
    return torch.where(horizontal, levels.flip(-1), levels)


class Tiles(NamedTuple):
    """For each tile, row by row, the tile that is shown there, (B, 16) int64 on the CPU."""

    source: Tensor


def _draw_tiles(shape: Shape, params: Params, rng: CounterRng) -> Tiles:
    """A share of the tiles, in a random order among themselves."""
    rng = rng.on_cpu()
    count = _TILES * _TILES
    order = rng.permutations("order", count)
    moving = torch.arange(count) < (params["share"][:, None] * count).round()
    keys = torch.where(moving, rng.uniforms("mix", count), 1 + torch.arange(count))
    mixed = order.gather(1, keys.argsort(dim=1))
    return Tiles(torch.empty_like(order).scatter_(1, order, mixed))


def _shuffle(levels: Tensor, params: Params, draw: Tiles) -> Tensor:
    """Where sides are not multiples of four, tiles differ by a pixel: one too small shows some of its neighbour."""
    height, width = levels.shape[-2:]
    row, column = (to_device(part, levels.device) for part in (draw.source // _TILES, draw.source % _TILES))
    tile_y, inside_y, start_y = _tiling(height, levels.device)
    tile_x, inside_x, start_x = _tiling(width, levels.device)
    here = tile_y[:, None] * _TILES + tile_x
    y = (start_y[row][:, here] + inside_y[:, None]).clamp_(max=height - 1)
    x = (start_x[column][:, here] + inside_x).clamp_(max=width - 1)
    source = (y * width + x).flatten(1)[:, None].expand(-1, levels.shape[1], -1)
    return levels.flatten(2).gather(2, source).view(levels.shape)


def _tiling(size: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Each pixel's tile and place in it, and where tiles start."""
    start = torch.arange(_TILES, device=device) * size // _TILES
    pixel = torch.arange(size, device=device)
    tile = (pixel[:, None] >= start).sum(1) - 1
    return tile, pixel - start[tile], start


OCCLUSIONS: tuple[Corruption, ...] = (
    Corruption(
        name="syn2nat:border",
        family="syn2nat",
        description="Keeps the centre, 130 of 224 pixels, and blackens the rest; lower severities keep more.",
        table=SeverityTable.linear(kept=(1, 130 / 224)),
        apply=_border,
        at_once=AtOnce("lookup", _make_border),
        severities=(5,),
        source=SOURCE,
        uint8_io=True,
    ),
    Corruption(
        name="syn2nat:coarse_dropout",
        family="syn2nat",
        description="Blackens 16–48 squares of 8 of 224 pixels; lower severities have fewer.",
        table=SeverityTable.linear(share=(0, 1)),
        draw=_draw_coarse_dropout,
        apply=_cut,
        at_once=AtOnce("lookup", partial(_make_holes, draw=_draw_coarse_dropout)),
        severities=(5,),
        source=SOURCE,
        uint8_io=True,
    ),
    Corruption(
        name="syn2nat:cutout",
        family="syn2nat",
        description="Blackens one square of 150 of 224 pixels; lower severities have a smaller one.",
        table=SeverityTable.linear(side=(0, _CUTOUT_SIDE)),
        draw=_draw_cutout,
        apply=_cut,
        at_once=AtOnce("lookup", partial(_make_holes, draw=_draw_cutout)),
        severities=(5,),
        source=SOURCE,
        uint8_io=True,
    ),
    Corruption(
        name="syn2nat:channel_dropout",
        family="syn2nat",
        description="Sets one of the three channels to 0; there is no less of it.",
        table=SeverityTable.linear(),
        draw=_draw_channel,
        apply=_drop_channel,
        severities=(5,),
        source=SOURCE,
        only_severity=5,
        uint8_io=True,
        at_once=by_level(_drop_channel, _draw_channel, uint8_io=True),
    ),
    Corruption(
        name="syn2nat:flip",
        family="syn2nat",
        description="Flips left to right, upside down, or both; there is no less of it.",
        table=SeverityTable.linear(),
        draw=_draw_flips,
        apply=_flip,
        severities=(5,),
        source=SOURCE,
        only_severity=5,
        uint8_io=True,
    ),
    Corruption(
        name="syn2nat:random_grid_shuffle",
        family="syn2nat",
        description="Cuts the image into 4 × 4 tiles and shuffles them; lower severities shuffle only some.",
        table=SeverityTable.linear(share=(0, 1)),
        draw=_draw_tiles,
        apply=_shuffle,
        severities=(5,),
        source=SOURCE,
        uint8_io=True,
    ),
)
