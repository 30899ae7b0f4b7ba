"""Syn2Nat's candidates that hide parts of the image, or one of its channels.

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
from blemish.corruptions.moves import by_map
from blemish.corruptions.severity import Params, SeverityTable
from blemish.corruptions.syn2nat.published import unit
from blemish.ops.colour import LUMINANCE
from blemish.ops.positions import Positions, in_place
from blemish.ops.stamps import pixels_between
from blemish.ops.transfer import to_device

_FEWEST_HOLES, _MOST_HOLES = 16, 48
_HOLE_SIDE = 8
_CUTOUT_SIDE = 150


def _border(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """Black but for the middle, whose sides are a share of the image's."""
    return levels * _kept(levels, params)


def _kept(levels: Tensor, params: Params) -> Tensor:
    height, width = levels.shape[-2:]
    rows, columns = (_middle(params["kept"], size, levels.device) for size in (height, width))
    return rows.view(-1, 1, height, 1) & columns.view(-1, 1, 1, width)


def _inside_border(levels: Tensor, params: Params, draw: tuple[()]) -> Positions:
    return in_place(levels, _kept(levels, params)[:, 0])


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


def _left(levels: Tensor, draw: Holes) -> Tensor:
    """Which pixels are in no hole, (B, 1, H, W)."""
    height, width = levels.shape[-2:]
    rows = pixels_between(draw.top, draw.bottom, height, levels.device).to(torch.float32)
    columns = pixels_between(draw.left, draw.right, width, levels.device).to(torch.float32)
    # The number of holes over each pixel, exact in any precision.
    holes = rows.transpose(1, 2) @ columns
    return (holes == 0)[:, None]


def _cut(levels: Tensor, params: Params, draw: Holes) -> Tensor:
    return levels * _left(levels, draw)


def _around_holes(levels: Tensor, params: Params, draw: Holes) -> Positions:
    return in_place(levels, _left(levels, draw)[:, 0])


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


OCCLUSIONS: tuple[Corruption, ...] = (
    unit(
        name="syn2nat:border",
        description="Keeps the centre, 130 of 224 pixels, and blackens the rest; lower severities keep more.",
        table=SeverityTable.linear(kept=(1, 130 / 224)),
        apply=_border,
        moves=by_map(_inside_border),
        at_once=AtOnce("lookup", _make_border),
        uint8_io=True,
    ),
    unit(
        name="syn2nat:coarse_dropout",
        description="Blackens 16–48 squares of 8 of 224 pixels; lower severities have fewer.",
        table=SeverityTable.linear(share=(0, 1)),
        draw=_draw_coarse_dropout,
        apply=_cut,
        moves=by_map(_around_holes),
        at_once=AtOnce("lookup", partial(_make_holes, draw=_draw_coarse_dropout)),
        uint8_io=True,
    ),
    unit(
        name="syn2nat:cutout",
        description="Blackens one square of 150 of 224 pixels; lower severities have a smaller one.",
        table=SeverityTable.linear(side=(0, _CUTOUT_SIDE)),
        draw=_draw_cutout,
        apply=_cut,
        moves=by_map(_around_holes),
        at_once=AtOnce("lookup", partial(_make_holes, draw=_draw_cutout)),
        uint8_io=True,
    ),
    unit(
        name="syn2nat:channel_dropout",
        description="Sets one of the three channels to 0; there is no less of it.",
        table=SeverityTable.linear(),
        draw=_draw_channel,
        apply=_drop_channel,
        only_severity=5,
        uint8_io=True,
        at_once=by_level(_drop_channel, _draw_channel, uint8_io=True),
    ),
)
