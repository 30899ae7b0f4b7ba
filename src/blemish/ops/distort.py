"""Positions for warps: lenses, stretched grids and quadrilaterals; shifts and enlargements."""

from __future__ import annotations

import torch
from torch import Tensor

from blemish.ops.fused import fused
from blemish.ops.transfer import to_device
from blemish.ops.warp import snapped


def shifted(images: Tensor, shift: Tensor) -> Tensor:
    """Images moved right and down by shift[b], (B, 2) float64 on the CPU, with the mirror image beyond the border.

    Bilinear, to 1/32 pixel. A shift by exactly half a pixel puts half of all values midway between two levels, so
    unlike `sample` this makes no error in the positions.
    """
    lines = []
    for dim, move in ((-1, shift[:, 0]), (-2, shift[:, 1])):
        size = images.shape[dim]
        position = snapped(torch.arange(size) - move[:, None])
        below = position.floor()
        lines.append((_mirrored(below, size), _mirrored(below + 1, size), position - below))
    return _mixed(images, *lines)


_Lines = tuple[Tensor, Tensor, Tensor]
"""For each image the numbers of lines and of others, and the share of the others, (B, n) on the CPU."""


def _mixed(images: Tensor, columns: _Lines, rows: _Lines) -> Tensor:
    """Columns, then rows."""
    kernels = fused("stencils", images.device)
    if kernels is not None:
        across, down = (tuple(part.numpy() for part in lines) for lines in (columns, rows))
        mixed: Tensor = kernels.mixed_lines(images, across, down)
        return mixed
    return _blended(_blended(images, -1, *columns), -2, *rows)


def _blended(images: Tensor, dim: int, first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    """Lines of each image along a dimension, (B, n) on the CPU: the first ones, and the second ones with a share."""
    view = (-1, 1, 1, first.shape[1]) if dim == -1 else (-1, 1, first.shape[1], 1)
    size = [*images.shape]
    size[dim] = first.shape[1]
    weight = to_device(share, images.device, torch.float32).view(view)
    lines = [images.gather(dim, to_device(i, images.device).view(view).expand(size)) for i in (first, second)]
    return lines[0].mul_(1 - weight).add_(lines[1].mul_(weight))


def area_enlarged(images: Tensor, sides: Tensor, height: int, width: int) -> Tensor:
    """The first sides[b] = (width, height) pixels of each image, enlarged to width × height.

    A new pixel shows the mean of what it covers, as OpenCV enlarges by area: old pixels stay squares. `sides` (B, 2)
    int64 lives on the CPU. Whole numbers decide where an old pixel ends.
    """
    lines = []
    for size, old in ((width, sides[:, :1]), (height, sides[:, 1:])):
        pixel = torch.arange(size)
        first = pixel * old // size
        beyond = (pixel + 1) * old - (first + 1) * size
        share = (beyond % old).to(torch.float64) / old * (beyond > 0)
        lines.append((first, torch.minimum(first + 1, old - 1), share))
    return _mixed(images, *lines)


def _mirrored(positions: Tensor, size: int) -> Tensor:
    period = 2 * size - 2
    inside = positions.remainder(period)
    return torch.minimum(inside, period - inside).to(torch.int64)


def lens_positions(
    strength: Tensor, shift: Tensor, height: int, width: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Where a lens takes each pixel from: from 1 + strength · (r² + r⁴) times its distance r to the centre, in widths.

    `strength` (B,) and `shift` (B, 2), pixels right and down that are added to all positions, live on the CPU.
    """
    # In units of the width, from the centre; made on the CPU, as a GPU would round the division differently.
    x, y = ((torch.arange(size, dtype=torch.float64) - (size - 1) / 2) / width for size in (width, height))
    x, y = to_device(x, device, torch.float32), to_device(y, device, torch.float32)[:, None]
    square = x * x + y * y
    gain = to_device(strength, device, torch.float32).view(-1, 1, 1) * (square * (square + 1)) + 1
    right, down = to_device(shift, device, torch.float32)[..., None, None].unbind(1)
    return gain * (x * width) + (right + (width - 1) / 2), gain * (y * width) + (down + (height - 1) / 2)


def grid_positions(stretch: Tensor, size: int) -> Tensor:
    """Where pixels along a side come from, (B, size), if cell i of a grid shows stretch[:, i] times its own length.

    The cells are ⌊size / cells⌋ pixels long. The strip they leave over shows all that is left up to the border.
    """
    cells = stretch.shape[1]
    length = size // cells
    rest = size - cells * length
    starts = torch.cat([torch.zeros_like(stretch[:, :1]), stretch.cumsum(1) * length], dim=1)
    if rest:
        stretch = torch.cat([stretch, (size - starts[:, -1:]) / rest], dim=1)
    pixel = torch.arange(size)
    cell = pixel // length
    # Beyond the last cell counts as part of the strip, however long.
    cell = cell.clamp(max=cells if rest else cells - 1)
    return starts[:, cell] + stretch[:, cell] * (pixel - cell * length)


def quadrilateral_map(corners: Tensor) -> Tensor:
    """The (B, 3, 3) perspective maps that take the unit square to quadrilaterals.

    Corners (B, 4, 2) are those of (0, 0), (1, 0), (1, 1) and (0, 1), as (x, y). Where three of them lie on a line, the
    map is that of a quadrilateral very near.
    """
    first, second, third, fourth = corners.unbind(1)
    u, v = second - third, fourth - third
    excess = first - second + third - fourth
    area = _cross(u, v)
    area = torch.where(area.abs() < 1e-9, 1e-9, area)
    g, h = (_cross(excess, v) / area)[:, None], (_cross(u, excess) / area)[:, None]
    columns = [second - first + g * second, fourth - first + h * fourth, first]
    last_row = torch.cat([g, h, torch.ones_like(g)], dim=1)
    return torch.cat([torch.stack(columns, dim=2), last_row[:, None]], dim=1)


def _cross(first: Tensor, second: Tensor) -> Tensor:
    return first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]
