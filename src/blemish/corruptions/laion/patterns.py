"""LAION-C's patterns over the whole image: glitches, vertical lines and a checkerboard of light and dark."""

from __future__ import annotations

import random
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image, side_scale
from blemish.corruptions.draws import Field
from blemish.corruptions.laion.colour import SOURCE, pixels
from blemish.corruptions.moves import A_LITTLE
from blemish.corruptions.severity import PUBLISHED_SIDE, Params, SeverityTable
from blemish.ops.cache import cached
from blemish.ops.colour import as_colour, back_to, luma
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.transfer import to_device


class Band(NamedTuple):
    """Rows ``top`` … ``bottom`` − 1, moved to the right around the edge."""

    shift: int
    top: int
    bottom: int


class Glitch(NamedTuple):
    """Bands, one over the other, and one channel that is moved as a whole."""

    bands: tuple[Band, ...]
    channel: int
    across: int
    down: int


def glitch_of(level: int, height: int, width: int) -> Glitch:
    """The glitch of a level at a size. It is the same for every image: the reference begins with one seed for all.

    The numbers are those of Python's own generator, which gives the same ones in every version.
    """
    chance, bands = random.Random(), []
    most = int(level**2 / 100 * width)
    for number in range(2 * level):
        chance.seed(1 + number)
        shift = chance.randint(-most, most)
        if shift:
            top = chance.randint(0, height)
            bands.append(Band(shift, top, top + min(chance.randint(1, height // 4), height - top)))
    chance.seed(1)
    channel, across, down = (
        chance.randint(0, 2),
        chance.randint(-2 * level, 2 * level),
        chance.randint(-2 * level, 2 * level),
    )
    return Glitch(tuple(bands), channel, across, down)


def _glitched(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    source = as_colour(images)
    height, width = source.shape[-2:]
    glitch = glitch_of(int(params["level"][0]), height, width)
    out = source.clone()
    for shift, top, bottom in glitch.bands:
        out[..., top:bottom, :] = source[..., top:bottom, :].roll(shift, -1)
    channel = source[:, glitch.channel].roll(glitch.down, -2)
    channel[:, glitch.down % height] = source[:, glitch.channel, 0].roll(glitch.across, -1)
    out[:, glitch.channel] = channel
    light = 1 - per_image(params["dark"], images)
    out[..., ::2, :] = (out[..., ::2, :] * light).add_(0.5).floor_().to(torch.uint8)
    return back_to(images, out)


class Grid(NamedTuple):
    """Cells of the image, one for each point of each line: their borders in pixels."""

    left: Tensor
    right: Tensor
    top: Tensor
    bottom: Tensor
    x: Tensor


@cached(mebibytes=4)
def _grid(lines: int, step: int, height: int, width: int, device: str) -> Grid:
    x = [number / lines * width for number in range(lines)]
    top = list(range(0, height, step))
    return Grid(
        left=torch.tensor([int(left) for left in x], device=device),
        right=torch.tensor([min(int(left + width / lines), width) for left in x], device=device),
        top=torch.tensor(top, device=device),
        bottom=torch.tensor([min(y + step, height) for y in top], device=device),
        x=torch.tensor(x, dtype=torch.float64, device=device),
    )


def _cell_means(levels: Tensor, grid: Grid) -> Tensor:
    """Whole means of the cells, rounded down: int64 (B, C, lines, points)."""
    sums = F.pad(levels.to(torch.int64).cumsum(2).cumsum(3), (1, 0, 1, 0))

    def at(rows: Tensor, columns: Tensor) -> Tensor:
        return sums.index_select(2, rows).index_select(3, columns)

    total = (
        at(grid.bottom, grid.right) - at(grid.top, grid.right) - at(grid.bottom, grid.left) + at(grid.top, grid.left)
    )
    area = (grid.bottom - grid.top)[:, None] * (grid.right - grid.left)
    return torch.div(total, area, rounding_mode="floor").transpose(2, 3)


def _topmost_segment(start: Tensor, points: Tensor, tops: Tensor, height: int, width: int, reach: int) -> Tensor:
    """The number, from 1, of the last segment that covers a pixel, and 0 where none does; int64 (B, H · W).

    Segments lead from each point of a line to the next, (B, lines, points), by Bresenham's rule: along the longer axis
    pixel by pixel, the other one rounded, halves away from the start. None is longer than ``reach``.
    """
    images, device = len(points), points.device
    kernels = compiled("patterns") if device.type == "cpu" else None
    if kernels is not None:
        canvas = torch.zeros((images, height, width), dtype=torch.int64, device="cpu")
        shared_out(kernels.topmost_segments, [points.contiguous(), canvas], start.numpy(), tops.numpy())
        return canvas.flatten(1)
    before = torch.cat([start.expand(images, -1)[..., None], points[..., :-1]], dim=2).flatten()
    across = points.flatten() - before
    down = torch.diff(tops, prepend=tops[:1]).expand_as(points).flatten()
    top = tops.expand_as(points).flatten() - down
    along, aside = torch.maximum(across.abs(), down), torch.minimum(across.abs(), down)
    segments = torch.arange(len(before), device=device)
    if device.type == "cpu":
        segment = segments.repeat_interleave(along + 1)
        step = torch.arange(len(segment), device=device) - ((along + 1).cumsum(0) - along - 1)[segment]
    else:  # asking how long they are would wait for the device
        segment, step = (
            segments.repeat_interleave(reach + 1),
            torch.arange(reach + 1, device=device).repeat(len(before)),
        )
    length = along[segment]
    moved = torch.div(2 * aside[segment] * step + length, 2 * length.clamp(min=1), rounding_mode="floor")
    mostly_across = across[segment].abs() > down[segment]
    x = before[segment] + across.sign()[segment] * torch.where(mostly_across, step, moved)
    y = top[segment] + torch.where(mostly_across, moved, step)
    seen = (step <= length) & (x >= 0) & (x < width) & (y < height)
    each = len(before) // images
    image, number = torch.div(segment, each, rounding_mode="floor"), segment % each + 1
    # One place more than there are pixels catches what is not seen.
    position = image * (height * width + 1) + torch.where(seen, y * width + x, height * width)
    canvas = torch.zeros(images * (height * width + 1), dtype=torch.int64, device=device)
    return canvas.scatter_reduce_(0, position, number, "amax").view(images, -1)[:, :-1]


def _vertical_lines(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """Lines that lean to the left where the image is dark, in the colours that they meet.

    A line is one pixel wide at any size. So there are as many per pixel as at the published width: as many in all would
    leave a large image mostly black, and a small one without gaps at every severity.
    """
    source = as_colour(images)
    height, width = source.shape[-2:]
    scale = side_scale(height, width)
    count = max(1, round(float(params["lines"][0]) * width / PUBLISHED_SIDE))
    step = pixels(float(params["step"][0]), images)
    grid = _grid(count, step, height, width, str(source.device))
    colours, light = _cell_means(source, grid), _cell_means(luma(source), grid)[:, 0]
    lean = to_device(params["lean"] * scale, source.device).view(-1, 1, 1)
    # Cut towards zero, as the conversion to whole numbers does.
    points = (grid.x[:, None] - lean * (1 - light.to(torch.float64) / 255)).to(torch.int64)
    reach = max(step, int(float(params["lean"].max()) * scale) + 1)
    top = _topmost_segment(grid.left, points, grid.top, height, width, reach)
    palette = F.pad(colours.flatten(2), (1, 0))  # where there is no line it is black
    out = palette.gather(2, top[:, None].expand(-1, 3, -1)).view(source.shape).to(torch.uint8)
    return back_to(images, out)


def _draw_tiles(shape: Shape, params: Params, rng: CounterRng) -> Field:
    side = _tile_side(shape.height, shape.width)
    return Field(rng.uniforms("tiles", 1, -(-shape.height // side), -(-shape.width // side)))


def _tile_side(height: int, width: int) -> int:
    return max(1, round(14 * side_scale(height, width)))


def _checkerboard(images: Tensor, params: Params, draw: Field) -> Tensor:
    """The first tile is lighter, its neighbours are darker."""
    height, width = images.shape[-2:]
    side = _tile_side(height, width)
    rows, columns = draw.field.shape[-2:]
    low, high = (per_image(params[name], images) for name in ("low", "high"))
    parity = torch.arange(rows, device=images.device)[:, None] + torch.arange(columns, device=images.device)
    shift = (low + (high - low) * draw.field) * (1 - 2 * (parity % 2)) / 255
    return images.add_(shift.repeat_interleave(side, -2).repeat_interleave(side, -1)[..., :height, :width])


glitched = Corruption(
    name="laion:glitched",
    family="laion",
    description="Moves bands sideways and one colour up or down, and blackens every other row, like a broken video.",
    # Below severity 1 every other row darkens; black at once would leave no weak glitch.
    table=SeverityTable.of(level=(0, 2, 4, 5, 8, 10), dark=(0, 1, 1, 1, 1, 1), rounded=("level",)),
    apply=_glitched,
    moves=A_LITTLE,
    shared=("level",),
    uint8_io=True,
    source=SOURCE,
    version=2,
)

vertical_lines = Corruption(
    name="laion:vertical_lines",
    family="laion",
    description="Redraws the image with thin vertical lines that lean to the left where it is dark.",
    table=SeverityTable.of(
        lines=(224, 224, 178, 112, 84, 60),
        step=(1, 1, 2, 4, 6, 8),
        lean=(0, 40, 40, 40, 40, 40),
        rounded=("lines", "step"),
    ),
    apply=_vertical_lines,
    moves=A_LITTLE,
    shared=("lines", "step"),
    uint8_io=True,
    source=SOURCE,
    version=2,
)

luminance_checkerboard = Corruption(
    name="laion:luminance_checkerboard",
    family="laion",
    description="Makes the squares of a checkerboard lighter and darker in turn, each by a random amount.",
    table=SeverityTable.of(low=(0, 0, 50, 100, 125, 150), high=(0, 50, 100, 125, 150, 255)),
    draw=_draw_tiles,
    apply=_checkerboard,
    source=SOURCE,
)
