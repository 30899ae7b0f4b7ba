"""LAION-C's pieces: mosaics and stickers of small pictures, and geometric shapes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, side_scale
from blemish.corruptions.laion.colour import SOURCE, pixels
from blemish.corruptions.moves import STILL
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.cache import cached
from blemish.ops.colour import as_colour, back_to
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.pillow import resized
from blemish.ops.raster import PixelTable, disc_mask, pixel_table, polygon_masks, star_masks
from blemish.ops.stamps import placed_index, topmost
from blemish.ops.tiles import TileBank
from blemish.ops.transfer import to_device

_SMALLEST, _LARGEST = 6, 15
_MOST_SHAPES, _MOST_STICKERS = 1000, 1200
_TRIANGLE, _SQUARE, _STAR, _CIRCLE = range(4)

# Distances that are compared at a time: on a CPU they should stay in the cache.
_CPU_ROOM, _GPU_ROOM = 2**20, 2**27


class Shapes(NamedTuple):
    """Kind, left, top, size (0 is the smallest), colour (B, N, 3) and degrees of shapes in the order of drawing."""

    kind: Tensor
    x: Tensor
    y: Tensor
    size: Tensor
    colour: Tensor
    degrees: Tensor


def _draw_shapes(shape: Shape, params: Params, rng: CounterRng) -> Shapes:
    # Always as many as the strongest has, so that a stronger one adds shapes to those of a weaker one.
    count = _MOST_SHAPES
    return Shapes(
        rng.integers("kind", count, high=4),
        rng.integers("x", count, high=shape.width),
        rng.integers("y", count, high=shape.height),
        rng.integers("size", count, high=_LARGEST - _SMALLEST + 1),
        rng.integers("colour", count, 3, high=256),
        rng.integers("degrees", count, high=360),
    )


@cached(mebibytes=64)
def _shape_pixels(sizes: tuple[int, ...], device: str) -> PixelTable:
    """The pixels of triangles, squares and circles of all sizes, then of stars of all sizes and rotations."""
    triangles = [polygon_masks(np.array([[[0, 0], [s, 0], [s // 2, s]]]), s)[0] for s in sizes]
    masks = [(triangle, size) for triangle, size in zip(triangles, sizes, strict=True)]
    masks += [(np.ones((size + 1, size + 1), dtype=np.bool_), 0) for size in sizes]
    masks += [(disc_mask(size), 0) for size in sizes]
    for size in sizes:
        stars, centre = star_masks(size)
        masks += [(star, centre) for star in stars]
    return pixel_table(masks, torch.device(device))


def _geometric_shapes(images: Tensor, params: Params, draw: Shapes) -> Tensor:
    source, draw = as_colour(images), Shapes(*_first(draw, params["count"]))
    scale = side_scale(*source.shape[-2:])
    sizes = tuple(max(1, round(size * scale)) for size in range(_SMALLEST, _LARGEST + 1))
    table = _shape_pixels(sizes, str(source.device))
    plain = torch.where(draw.kind == _CIRCLE, 2, draw.kind) * len(sizes) + draw.size
    star = 3 * len(sizes) + draw.size * 360 + draw.degrees
    mask = torch.where(draw.kind == _STAR, star, plain)
    colours = draw.colour.to(torch.uint8)
    kernels = compiled("pieces") if source.device.type == "cpu" else None
    if kernels is not None:
        out, counts = source.clone(memory_format=torch.contiguous_format), params["count"].ceil().to(torch.int64)
        shared_out(kernels.shapes, [out, draw.y, draw.x, mask, counts, colours], *(part.numpy() for part in table))
        return back_to(images, out)
    index = _placed(draw.y, draw.x, table.down[mask], table.right[mask], params["count"], source)
    return back_to(images, _covered(source, index, colours.transpose(1, 2)))


def _first(draw: Iterable[Tensor], count: Tensor) -> Iterator[Tensor]:
    """As many pieces of a draw as any image shows; one at least, to be looked up where none is shown."""
    most = max(1, int(count.max()))
    return (values[:, :most] for values in draw)


def _placed(y: Tensor, x: Tensor, down: Tensor, right: Tensor, count: Tensor, images: Tensor) -> Tensor:
    """Where the pixels of the first ``count`` pieces lie."""
    shown = torch.arange(y.shape[1], device="cpu") < count.view(-1, 1)
    rows, columns = y[..., None] + down, x[..., None] + right
    return placed_index(rows, columns, to_device(shown, images.device), *images.shape[-2:])


def _covered(images: Tensor, index: Tensor, colours: Tensor) -> Tensor:
    """Images under opaque pieces of one colour each, (B, C, N); later ones lie on top."""
    top = topmost(index, *images.shape[-2:])
    palette = F.pad(colours, (1, 0))
    painted = palette.gather(2, top.flatten(1)[:, None].expand(-1, images.shape[1], -1)).view(images.shape)
    return torch.where(top > 0, painted, images)


class Pastes(NamedTuple):
    """Which tile, and the row and column of its first pixel: (B, N) each, in the order of pasting."""

    tile: Tensor
    y: Tensor
    x: Tensor


@dataclass(frozen=True)
class _Tiled:
    """A function that needs tiles: an object rather than a closure, so that it can be compared and sent to workers."""

    bank: TileBank


class _DrawStickers(_Tiled):
    def __call__(self, shape: Shape, params: Params, rng: CounterRng) -> Pastes:  # noqa: ARG002
        side = max(1, round(16 * side_scale(shape.height, shape.width)))
        # The last row and column are never covered, as in the reference.
        return Pastes(
            rng.integers("tile", _MOST_STICKERS, high=len(self.bank.common(side, rng.device))),
            rng.integers("y", _MOST_STICKERS, high=shape.height - side),
            rng.integers("x", _MOST_STICKERS, high=shape.width - side),
        )


class _Stickers(_Tiled):
    def __call__(self, images: Tensor, params: Params, draw: Pastes) -> Tensor:
        source, draw = as_colour(images), Pastes(*_first(draw, params["count"]))
        height, width = source.shape[-2:]
        side = pixels(16, images)
        tiles = self.bank.common(side, source.device)
        offset = torch.arange(side * side, device=source.device)
        down, right = torch.div(offset, side, rounding_mode="floor"), offset % side
        index = _placed(draw.y, draw.x, down, right, params["count"], source)
        top = topmost(index, height, width).flatten(1)
        on_top = (top - 1).clamp(min=0)
        pixel = torch.arange(height * width, device=source.device)
        row = (torch.div(pixel, width, rounding_mode="floor") - draw.y.gather(1, on_top)).clamp(0, side - 1)
        column = (pixel % width - draw.x.gather(1, on_top)).clamp(0, side - 1)
        # (tile, row, column) of every pixel, in the order of the tiles' memory.
        number = (draw.tile.gather(1, on_top) * side + row) * side + column
        flat = tiles.permute(1, 0, 2, 3).reshape(3, -1)
        pasted = flat[:, number].transpose(0, 1).reshape(source.shape)
        return back_to(images, torch.where((top > 0).view(-1, 1, height, width), pasted, source))


class _Mosaic(_Tiled):
    def __call__(self, images: Tensor, params: Params, draw: tuple[()]) -> Tensor:  # noqa: ARG002
        source = as_colour(images)
        height, width = source.shape[-2:]
        side = pixels(float(params["tile"][0]), images)
        rows, columns = -(-height // side), -(-width // side)
        # A grid that does not fit is centred; its outer tiles are cut.
        top, left = (rows * side - height) // 2, (columns * side - width) // 2
        border = (left, columns * side - width - left, top, rows * side - height - top)
        whole = F.pad(source.to(torch.float32), border, mode="replicate").to(torch.uint8)
        tiles = self.bank.at(side, source.device)
        chosen = nearest_tiles(resized(whole, rows, columns, "bicubic"), tiles)
        out = tiles[chosen].view(-1, rows, columns, 3, side, side).permute(0, 3, 1, 4, 2, 5)
        out = out.reshape(-1, 3, rows * side, columns * side)[..., top : top + height, left : left + width]
        return back_to(images, out.contiguous())


def nearest_tiles(colours: Tensor, tiles: Tensor) -> Tensor:
    """The number of the tile whose mean colour is nearest to each colour (B, 3, rows, columns); the first of equals.

    Distances of sums are whole numbers, which float64 holds exactly: neither the order of summation nor the device
    can matter. The tile's number is their last digits, so that the least of them names the first of the nearest.
    """
    count, area = len(tiles), tiles.shape[-1] ** 2
    kernels = compiled("nearest") if tiles.device.type == "cpu" else None
    if kernels is not None:
        nearest = torch.empty(colours[:, 0].numel(), dtype=torch.int64)
        wanted = colours.to(torch.int64).permute(0, 2, 3, 1).reshape(-1, 3) * area
        shared_out(kernels.nearest_tiles, [wanted, nearest], *_by_brightness(tiles))
        return nearest
    sums = tiles.to(torch.float64).sum((2, 3))
    lengths = sums.square().sum(1) * count + torch.arange(count, device=tiles.device)
    wanted = colours.to(torch.float64).permute(0, 2, 3, 1).reshape(-1, 3) * (2 * area * count)
    size = max(1, (_CPU_ROOM if tiles.device.type == "cpu" else _GPU_ROOM) // count)
    keys = [(lengths - wanted[i : i + size] @ sums.T).amin(1) for i in range(0, len(wanted), size)]
    return torch.cat(keys).remainder(count).to(torch.int64)


def _by_brightness(tiles: Tensor) -> tuple[NDArray[np.int64], ...]:
    """The sums of tiles in the order of their totals, their numbers, and the totals."""
    sums = tiles.to(torch.int64).sum((2, 3)).numpy()
    order = np.argsort(sums.sum(1), kind="stable")
    return np.ascontiguousarray(sums[order]), order.astype(np.int64), sums.sum(1)[order]


_DRAWN = TileBank()

mosaic = Corruption(
    name="laion:mosaic",
    family="laion",
    description="Rebuilds the image from small pictures of about the right colour.",
    table=SeverityTable.of(tile=(1, 4, 6, 8, 16, 28), rounded=("tile",)),
    apply=_Mosaic(_DRAWN),
    moves=STILL,
    shared=("tile",),
    uint8_io=True,
    source=SOURCE,
    files=_DRAWN,
)

stickers = Corruption(
    name="laion:stickers",
    family="laion",
    description="Covers the image with small square pictures at random places.",
    table=SeverityTable.of(count=(0, 100, 200, 400, 600, 1200), rounded=("count",)),
    draw=_DrawStickers(_DRAWN),
    apply=_Stickers(_DRAWN),
    moves=STILL,
    uint8_io=True,
    source=SOURCE,
    files=_DRAWN,
)

geometric_shapes = Corruption(
    name="laion:geometric_shapes",
    family="laion",
    description="Covers the image with small triangles, squares, stars and circles in random colours.",
    table=SeverityTable.of(count=(0, 150, 300, 600, 800, 1000), rounded=("count",)),
    draw=_draw_shapes,
    apply=_geometric_shapes,
    uint8_io=True,
    source=SOURCE,
)


def tiled_with(folder: str | os.PathLike[str]) -> tuple[Corruption, Corruption]:
    """Mosaic and stickers with crops of the pictures in a folder instead of drawn ones."""
    bank = TileBank.of(folder)
    return (
        replace(mosaic, apply=_Mosaic(bank), files=bank),
        replace(stickers, draw=_DrawStickers(bank), apply=_Stickers(bank), files=bank),
    )
