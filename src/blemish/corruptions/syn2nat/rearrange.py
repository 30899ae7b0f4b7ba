"""Syn2Nat's candidates that flip the image or shuffle its parts."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption
from blemish.corruptions.moves import by_map
from blemish.corruptions.severity import Params, SeverityTable
from blemish.corruptions.syn2nat.published import unit
from blemish.ops.positions import Positions, pixel_places
from blemish.ops.transfer import to_device

_TILES = 4


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


def _flipped(levels: Tensor, params: Params, draw: Flips) -> Positions:
    x, y = pixel_places(len(levels), *levels.shape[-2:])
    vertical, horizontal = (choice.view(-1, 1, 1) for choice in draw)
    return Positions(torch.where(horizontal, x.flip(-1), x), torch.where(vertical, y.flip(-2), y))


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


def _shuffled(levels: Tensor, draw: Tiles) -> tuple[Tensor, Tensor]:
    """From which row and column pixels come, (B, H, W).

    Where sides are not multiples of four, tiles differ by a pixel: one too small shows some of its neighbour.
    """
    height, width = levels.shape[-2:]
    row, column = (to_device(part, levels.device) for part in (draw.source // _TILES, draw.source % _TILES))
    tile_y, inside_y, start_y = _tiling(height, levels.device)
    tile_x, inside_x, start_x = _tiling(width, levels.device)
    here = tile_y[:, None] * _TILES + tile_x
    y = (start_y[row][:, here] + inside_y[:, None]).clamp_(max=height - 1)
    x = (start_x[column][:, here] + inside_x).clamp_(max=width - 1)
    return y, x


def _shuffle(levels: Tensor, params: Params, draw: Tiles) -> Tensor:
    y, x = _shuffled(levels, draw)
    source = (y * levels.shape[-1] + x).flatten(1)[:, None].expand(-1, levels.shape[1], -1)
    return levels.flatten(2).gather(2, source).view(levels.shape)


def _tiles_moved(levels: Tensor, params: Params, draw: Tiles) -> Positions:
    y, x = (places.to(torch.float64) for places in _shuffled(levels, draw))
    return Positions(x, y, whole=True)


def _tiling(size: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Each pixel's tile and place in it, and where tiles start."""
    start = torch.arange(_TILES, device=device) * size // _TILES
    pixel = torch.arange(size, device=device)
    tile = (pixel[:, None] >= start).sum(1) - 1
    return tile, pixel - start[tile], start


REARRANGEMENTS: tuple[Corruption, ...] = (
    unit(
        name="syn2nat:flip",
        description="Flips left to right, upside down, or both; there is no less of it.",
        table=SeverityTable.linear(),
        draw=_draw_flips,
        apply=_flip,
        moves=by_map(_flipped),
        only_severity=5,
        uint8_io=True,
    ),
    unit(
        name="syn2nat:random_grid_shuffle",
        description="Cuts the image into 4 × 4 tiles and shuffles them; lower severities shuffle only some.",
        table=SeverityTable.linear(share=(0, 1)),
        draw=_draw_tiles,
        apply=_shuffle,
        moves=by_map(_tiles_moved),
        uint8_io=True,
    ),
)
