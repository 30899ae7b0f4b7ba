"""MedMNIST-C's artefacts of slides and instruments: stains, bubbles and black corners."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image, side_scale
from blemish.corruptions.med.published import SOURCE, settings_of
from blemish.corruptions.moves import by_map
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.blots import BLOTS, blot_pixels
from blemish.ops.cache import cached
from blemish.ops.positions import Positions, in_place
from blemish.ops.raster import PixelTable, disc_mask, pixel_table
from blemish.ops.stamps import covered, placed_index, topmost
from blemish.ops.transfer import to_device

_MOST_MARKS, _MOST_BUBBLES = 5, 25
_LEAST_BUBBLES, _LEAST_RADIUS = 7, 3
# No stain begins nearer to the border, in pixels of 224.
_MARGIN = 10


class Stains(NamedTuple):
    """How many stains there are, (B,); which blot each is, and its first column and row, (B, N); on the CPU."""

    number: Tensor
    blot: Tensor
    x: Tensor
    y: Tensor


def _below(rank: Tensor, high: Tensor) -> Tensor:
    """Whole numbers 0 … high − 1 at uniform ranks; 0 where there are none."""
    return (rank.to(torch.float64) * high.clamp(min=0)).floor().to(torch.int64)


def _blot_side(params: Params, height: int, width: int) -> int:
    return max(1, round(float(params["side"][0]) * side_scale(height, width)))


def _draw_stains(shape: Shape, params: Params, rng: CounterRng) -> Stains:
    rng = rng.on_cpu()
    side = _blot_side(params, shape.height, shape.width)
    margin = round(_MARGIN * side_scale(shape.height, shape.width))
    most = params["marks"].to(torch.int64)
    count = torch.minimum(1 + _below(rng.uniforms("count", 1)[:, 0], most), most)
    ranks = rng.uniforms("place", 2, _MOST_MARKS)
    x, y = (
        margin + _below(ranks[:, i], torch.tensor(length - side - 2 * margin + 1))
        for i, length in enumerate((shape.width, shape.height))
    )
    return Stains(count, rng.integers("blot", _MOST_MARKS, high=BLOTS), x, y)


def _stain_deposit(levels: Tensor, params: Params, draw: Stains) -> Tensor:
    return stained(levels, draw, blot_pixels(_blot_side(params, *levels.shape[-2:]), str(levels.device)))


def stained(levels: Tensor, draw: Stains, blots: PixelTable) -> Tensor:
    """Black where any of the blots lies."""
    count, blot, x, y = (to_device(values, levels.device) for values in draw)
    shown = torch.arange(blot.shape[1], device=levels.device) < count[:, None]
    rows, columns = y[..., None] + blots.down[blot], x[..., None] + blots.right[blot]
    index = placed_index(rows, columns, shown, *levels.shape[-2:])
    return levels * ~covered(index, *levels.shape[-2:])


class Bubbles(NamedTuple):
    """How many bubbles there are, (B,), and their radii and centres, (B, N), in the order of drawing; on the CPU."""

    number: Tensor
    radius: Tensor
    x: Tensor
    y: Tensor


def _draw_bubbles(shape: Shape, params: Params, rng: CounterRng) -> Bubbles:
    rng = rng.on_cpu()
    least, most = params["least"], params["most"]
    count = least.to(torch.int64) + _below(rng.uniforms("count", 1)[:, 0], most - least + (most > 0))
    ranks = rng.uniforms("bubbles", 3, _MOST_BUBBLES)
    radius = _LEAST_RADIUS + _below(ranks[:, 0], params["radius"][:, None] - _LEAST_RADIUS + 1)
    radius = (radius.to(torch.float32) * side_scale(shape.height, shape.width)).round().clamp(min=1).to(torch.int64)
    x, y = (
        radius + _below(ranks[:, i], length - 2 * radius + 1)
        for i, length in enumerate((shape.width, shape.height), start=1)
    )
    return Bubbles(count, radius, x, y)


# How opaque the white of a bubble is, of 255: its rim, and what lies within.
_RIM, _INSIDE = 130, 100


@cached(mebibytes=16)
def _disc_pixels(most: int, device: str) -> PixelTable:
    """The pixels of rims and insides of bubbles of radius 0 … most, in turns."""
    masks = [(disc_mask(2 * r + more), r + more // 2) for r in range(most + 1) for more in (4, 0)]
    return pixel_table(masks, torch.device(device))


def _bubble(levels: Tensor, params: Params, draw: Bubbles) -> Tensor:
    height, width = levels.shape[-2:]
    scale = side_scale(height, width)
    table = _disc_pixels(max(1, round(float(params["radius"].max()) * scale)), str(levels.device))
    count, radius, x, y = (to_device(values, levels.device) for values in draw)
    shown = torch.arange(radius.shape[1], device=levels.device) < count[:, None]
    # Each bubble is drawn twice: its rim, then its inside. Both replace what is below, those of other bubbles too.
    disc = torch.stack([2 * radius, 2 * radius + 1], dim=2).flatten(1)
    twice = [values.repeat_interleave(2, dim=1) for values in (y, x, shown)]
    rows, columns = twice[0][..., None] + table.down[disc], twice[1][..., None] + table.right[disc]
    top = topmost(placed_index(rows, columns, twice[2], height, width), height, width).to(torch.int32)
    opacity = torch.where(top % 2 == 1, _RIM, _INSIDE).mul_(top > 0)
    total = levels.to(torch.int32).mul_(255 - opacity).add_(255 * opacity + 128)
    return ((total + (total >> 8)) >> 8).to(torch.uint8)


# The circle of severity 0 reaches so far beyond the corners of a square image, in halves of its side.
_WHOLE = math.sqrt(2) * 1.1


def _in_circle(levels: Tensor, params: Params) -> Tensor:
    """The corners of an oblong image lie further out: below severity 1 the circle comes from there."""
    height, width = levels.shape[-2:]
    half = min(width // 2, height // 2)
    further = _WHOLE * (math.hypot(height // 2, width // 2) / math.sqrt(2) - half)
    radius = per_image((params["factor"] * half + params["further"] * further).floor(), levels)
    down = torch.arange(height, device=levels.device)[:, None] - height // 2
    right = torch.arange(width, device=levels.device) - width // 2
    return down * down + right * right <= radius * radius


def _black_corner(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    return levels * _in_circle(levels, params)


def _inside_circle(levels: Tensor, params: Params, draw: tuple[()]) -> Positions:
    return in_place(levels, _in_circle(levels, params)[:, 0])


def _with(table: SeverityTable, parameter: str, values: tuple[float, ...], *, rounded: bool = True) -> SeverityTable:
    """A table with a further parameter that is the same for all data sets."""
    rows = {
        name: tuple((*row, value) for row, value in zip(own, values, strict=True)) for name, own in table.rows.items()
    }
    whole = table.rounded | {parameter} if rounded else table.rounded
    return SeverityTable((*table.names, parameter), rows, table.sizes, rounded=whole)


_BUBBLES = settings_of(
    "bubble", radius=("max_radius", _LEAST_RADIUS), most=("max_bubbles", 0), rounded=("radius", "most")
)

ARTEFACTS: tuple[Corruption, ...] = (
    Corruption(
        name="med:stain_deposit",
        family="med",
        description="Black blots of stain on a slide.",
        # Blots of four severities are of one size.
        table=_with(
            settings_of("stain_deposit", marks=("max_marks", 0), rounded=("marks",)), "side", (24, 24, 24, 24, 24, 32)
        ),
        draw=_draw_stains,
        apply=_stain_deposit,
        shared=("side",),
        uint8_io=True,
        source=SOURCE,
    ),
    Corruption(
        name="med:bubble",
        family="med",
        description="Pale bubbles of air under the glass of a slide.",
        table=_with(_BUBBLES, "least", (0, *[_LEAST_BUBBLES] * 5)),
        draw=_draw_bubbles,
        apply=_bubble,
        uint8_io=True,
        source=SOURCE,
    ),
    Corruption(
        name="med:black_corner",
        family="med",
        description="Black outside a circle, like the view through a dermatoscope.",
        # Published as it is: severity 5 leaves more of the image than 4.
        table=_with(
            settings_of("black_corner", factor=("radius_factor", _WHOLE)), "further", (1, *[0] * 5), rounded=False
        ),
        apply=_black_corner,
        moves=by_map(_inside_circle),
        uint8_io=True,
        source=SOURCE,
        version=2,
    ),
)
