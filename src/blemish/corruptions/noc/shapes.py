"""ImageNet-NOC's occlusions: dotted lines, rhombuses, raindrops and circles."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, side_scale
from blemish.corruptions.noc.published import FIGURE_5, unit
from blemish.corruptions.severity import Params, SeverityTable
from blemish.ops.stamps import Inside, covered, covered_index, times_covered, topmost
from blemish.ops.transfer import to_device

# The most shapes in any range: as many are always drawn, so that the first few do not depend on the severity.
_MOST_SHAPES = 180

# Lengths in published pixels. A disk that reaches six pixels from its middle one, seven counting that one, has the area
# of a circle of this radius; a rhombus reaches seven pixels to its corners. Both keep their middles off the border.
_DISK_RADIUS = 6.2
_RHOMBUS_REACH = 7.0
_MARGIN = 7.0

# A dotted line, three pixels thick: a dash of five pixels, and in most lines dots on every second pixel, four before it
# and, after a gap of three pixels, five behind it. These are the lines of the authors' release. The middles of the
# first and last dots are so far from that of the dash.
_DASH_REACH, _LINE_HALF_THICKNESS, _HALF_DOT = 2.5, 1.5, 0.5
_FIRST_DOT, _AFTER_GAP, _LAST_DOT = 10.0, 6.0, 14.0
_DOTTED_LINES = 6 / 7

# A pixel under that many drops is white on all 256 levels.
_MOST_DROPS = 16


class Shapes(NamedTuple):
    """Many shapes per image: middles (B, N, 2), down and right, in parts of the side, and gray values (B, N)."""

    middles: Tensor
    grays: Tensor


def _draw_shapes(shape: Shape, params: Params, rng: CounterRng) -> Shapes:
    return Shapes(rng.uniforms("places", _MOST_SHAPES, 2), rng.uniforms("grays", _MOST_SHAPES))


def _placed(images: Tensor, params: Params, middles: Tensor, margins: tuple[float, float]) -> tuple[Tensor, Tensor]:
    """The centres of the first `count` shapes in pixels, (B, N, 2), margins off the border, and which are shown."""
    height, width = images.shape[-2:]
    most = int(params["count"].max())
    scale = side_scale(height, width)
    down, right = (margin * scale for margin in margins)
    room = torch.tensor([height - 2 * down, width - 2 * right], dtype=torch.float32)
    first = torch.tensor([down - 0.5, right - 0.5], dtype=torch.float32)
    centres = middles[:, :most] * to_device(room, images.device) + to_device(first, images.device)
    return centres, to_device(torch.arange(most) < params["count"][:, None], images.device)


def _index(images: Tensor, params: Params, draw: Shapes, inside: Inside, reach: float) -> Tensor:
    """The pixels covered by the first `count` shapes; see `covered_index`."""
    centres, shown = _placed(images, params, draw.middles, (_MARGIN, _MARGIN))
    return covered_index(centres, shown, inside, (reach, reach), *images.shape[-2:])


class Lines(NamedTuple):
    """Many lines per image: middles as of shapes, whether a line has dots, bool (B, N), one gray, (B, 1, 1, 1)."""

    middles: Tensor
    dotted: Tensor
    gray: Tensor


def _draw_lines(shape: Shape, params: Params, rng: CounterRng) -> Lines:
    dotted = rng.uniforms("dots", _MOST_SHAPES) < _DOTTED_LINES
    return Lines(rng.uniforms("places", _MOST_SHAPES, 2), dotted, rng.uniforms("gray", 1, 1, 1))


def _lined(images: Tensor, params: Params, draw: Lines, *, upright: bool) -> Tensor:
    """Pixels under lines take one gray value. Lines stay inside: dots that would not fit are left out."""
    height, width = images.shape[-2:]
    scale = side_scale(height, width)
    extents = ((_LAST_DOT + _HALF_DOT) * scale, _LINE_HALF_THICKNESS * scale)
    margins = (_DASH_REACH - _HALF_DOT, _LINE_HALF_THICKNESS - _HALF_DOT)
    centres, shown = _placed(images, params, draw.middles, margins if upright else margins[::-1])
    middle = centres[..., 0 if upright else 1]
    dotted = draw.dotted[:, : middle.shape[1]]
    length = height if upright else width
    before = (dotted & (middle - _FIRST_DOT * scale >= -0.5))[..., None, None]
    behind = (dotted & (middle + _LAST_DOT * scale <= length - 0.5))[..., None, None]

    def inside(down: Tensor, right: Tensor) -> Tensor:
        along, aside = (down, right) if upright else (right, down)
        spot = along / scale
        even = (spot * 0.5 + 0.25).remainder_(1) < 0.5
        first = before & (spot < 0) & (spot >= -_FIRST_DOT - _HALF_DOT)
        last = behind & (spot >= _AFTER_GAP - _HALF_DOT) & (spot <= _LAST_DOT + _HALF_DOT)
        marked = (spot.abs() <= _DASH_REACH) | (even & (first | last))
        return marked & (aside.abs() <= _LINE_HALF_THICKNESS * scale)

    index = covered_index(centres, shown, inside, extents if upright else extents[::-1], height, width)
    return torch.where(covered(index, height, width), draw.gray, images)


def _artifacts(images: Tensor, params: Params, draw: Lines) -> Tensor:
    return _lined(images, params, draw, upright=False)


def _vertical_artifacts(images: Tensor, params: Params, draw: Lines) -> Tensor:
    return _lined(images, params, draw, upright=True)


def _rhombus_index(images: Tensor, params: Params, draw: Shapes) -> Tensor:
    reach = _RHOMBUS_REACH * side_scale(*images.shape[-2:])
    return _index(images, params, draw, lambda dy, dx: dy.abs() + dx.abs() <= reach, reach)


def _disk_index(images: Tensor, params: Params, draw: Shapes) -> Tensor:
    radius = _DISK_RADIUS * side_scale(*images.shape[-2:])
    return _index(images, params, draw, lambda dy, dx: dy.square() + dx.square() <= radius**2, radius)


def _painted(images: Tensor, draw: Shapes, index: Tensor) -> Tensor:
    """Every shape has a gray value; of those that overlap, the last lies on top."""
    top = topmost(index, *images.shape[-2:])
    grays = draw.grays.gather(1, (top - 1).clamp_(min=0).flatten(1)).view(top.shape)
    return torch.where(top > 0, grays, images)


def _rhombus(images: Tensor, params: Params, draw: Shapes) -> Tensor:
    return _painted(images, draw, _rhombus_index(images, params, draw))


def _circles(images: Tensor, params: Params, draw: Shapes) -> Tensor:
    return _painted(images, draw, _disk_index(images, params, draw))


def _rain(images: Tensor, params: Params, draw: Shapes) -> Tensor:
    """Each drop moves the pixels under it half the way to white."""
    drops = times_covered(_disk_index(images, params, draw), *images.shape[-2:]).clamp_(max=_MOST_DROPS)
    halves = to_device(torch.tensor([0.5**i for i in range(_MOST_DROPS + 1)], dtype=torch.float32), images.device)
    kept = halves.index_select(0, drops.flatten()).view(drops.shape)
    return images.sub_(1).mul_(kept).add_(1)


SHAPES: tuple[Corruption, ...] = (
    unit(
        name="noc:artifacts",
        description="Draws short dotted horizontal lines.",
        table=SeverityTable.between(count=(0, 15, 170), rounded=("count",)),
        draw=_draw_lines,
        apply=_artifacts,
        source=FIGURE_5,
        version=2,
    ),
    unit(
        name="noc:vertical_artifacts",
        description="Draws short dotted vertical lines.",
        table=SeverityTable.between(count=(0, 15, 180), rounded=("count",)),
        draw=_draw_lines,
        apply=_vertical_artifacts,
        source=FIGURE_5,
        version=2,
    ),
    unit(
        name="noc:rhombus",
        description="Covers the image with small gray rhombuses.",
        table=SeverityTable.between(count=(0, 9, 76), rounded=("count",)),
        draw=_draw_shapes,
        apply=_rhombus,
        source=FIGURE_5,
    ),
    unit(
        name="noc:rain",
        description="Whitens small disks, like drops on a window.",
        table=SeverityTable.between(count=(0, 12, 120), rounded=("count",)),
        draw=_draw_shapes,
        apply=_rain,
        source=FIGURE_5,
    ),
    unit(
        name="noc:circles",
        description="Covers the image with small gray disks.",
        table=SeverityTable.between(count=(0, 7, 50), rounded=("count",)),
        draw=_draw_shapes,
        apply=_circles,
        source=FIGURE_5,
    ),
)
