"""Geometric warps: affine maps as OpenCV samples them, and free displacement fields."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import shared_out
from blemish.ops.fused import fused
from blemish.ops.transfer import to_device

Outside = Literal["zeros", "replicate", "reflect101"]
"""What stands outside the image: black, the edge's values, or the mirror image without the edge."""

_PADDING: dict[Outside, str] = {"zeros": "zeros", "replicate": "border", "reflect101": "reflection"}

# OpenCV's warpAffine keeps coordinates in 1/1024 pixel and samples at multiples of 1/32.
_FINE = 1024
_SHIFT = 5
_STEPS = 32

# Far outside any image, where a position still is an exact float32.
_FAR = 2.0**16


def affine_from_points(source: Tensor, target: Tensor) -> Tensor:
    """The (B, 2, 3) float64 maps that take three target points (B, 3, 2), as (x, y), back to the source points."""
    homogeneous = torch.cat([target, torch.ones_like(target[..., :1])], dim=-1).numpy()
    return torch.from_numpy(_solved(homogeneous, source.numpy())).transpose(1, 2)


def _solved(matrices: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The solutions (B, 3, n) of matrices (B, 3, 3) · x = ``right``, by elimination with the largest pivots.

    Every product, sum and reciprocal is rounded by itself and in this order: LAPACK's order depends on the machine.
    """
    rows, images = np.concatenate([matrices, right], axis=2), np.arange(len(matrices))
    with np.errstate(divide="ignore", invalid="ignore"):  # points on a line have no map
        for column in (0, 1):
            pivot = column + np.abs(rows[:, column:, column]).argmax(1)
            rows[images, column], rows[images, pivot] = rows[images, pivot], rows[images, column]
            a, below = rows[:, column, column, None], rows[:, column + 1 :]
            below[:, :, column] = below[:, :, column] * (1 / a) if column == 0 else below[:, :, column] / a
            below[:, :, column + 1 : 3] -= below[:, :, column, None] * rows[:, column, None, column + 1 : 3]
        (_, b, c), (d, _, e), (f, g, _) = rows[:, :, :3].transpose(1, 2, 0)[..., None]
        inverse = 1 / rows[:, [0, 1, 2], [0, 1, 2], None]
        first, second, third = rows[:, 0, 3:], rows[:, 1, 3:], rows[:, 2, 3:]
        second = second - d * first
        third = (third - (f * first + g * second)) * inverse[:, 2]
        second = (second - e * third) * inverse[:, 1]
        first = (first - (b * second + c * third)) * inverse[:, 0]
    return np.stack([first, second, third], axis=1)


@lru_cache(maxsize=64)
def three_points(height: int, width: int) -> NDArray[np.float64]:
    """Points around the middle of an image, (3, 2) as (x, y), by whose moves affine maps are drawn."""
    arm = min(height, width) // 3
    corners: NDArray[np.float64] = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    return np.array([width // 2, height // 2]) + arm * corners


def drawn_positions(
    moves: NDArray[np.float32], strength: NDArray[np.float64], height: int, width: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """`affine_positions` of the maps that take `three_points`, moved by moves (B, 3, 2) · strength (B,), back."""
    points = three_points(height, width)
    kernels = compiled("warps", worthwhile=False)
    if kernels is not None:
        made: tuple[NDArray[np.int32], NDArray[np.int32]] = kernels.drawn_positions(
            points, moves, strength, height, width
        )
        return made
    moved = torch.from_numpy(points + moves.astype(np.float64) * strength[:, None, None])
    backward = affine_from_points(torch.from_numpy(points).expand_as(moved), moved)
    columns, rows = affine_positions(backward, height, width)
    return columns.numpy(), rows.numpy()


def warp_affine(images: Tensor, backward: Tensor) -> Tensor:
    """Sample bilinearly at backward · (x, y, 1), reflecting at the border without repeating the edge.

    `backward` (B, 2, 3) float64 lives on the CPU. Positions are rounded to 1/32 pixel as OpenCV does.
    """
    height, width = images.shape[-2:]
    kernels = fused("warps", images.device)
    if kernels is not None:
        positions = (part.numpy() for part in affine_positions(backward, height, width))
        warped: Tensor = kernels.affine(images, *positions)
        return warped
    per_column, per_row = (to_device(part, images.device) for part in affine_positions(backward, height, width))
    fine = per_column[:, :, None, :] + per_row[:, :, :, None] + _FINE // _STEPS // 2
    position = (fine >> _SHIFT).to(torch.float32)
    scale = to_device(
        torch.tensor([2 / (_STEPS * (width - 1)), 2 / (_STEPS * (height - 1))], dtype=torch.float32), images.device
    )
    grid = position.mul_(scale[:, None, None]).sub_(1).permute(0, 2, 3, 1)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="reflection", align_corners=True)


def affine_positions(backward: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """What columns (B, 2, W) and rows (B, 2, H) contribute to x and y, int32 in 1/1024 pixel."""
    x, y = (torch.arange(n, dtype=torch.float64) for n in (width, height))
    per_column = (backward[:, :, 0, None] * x * _FINE).round()
    per_row = ((backward[:, :, 1, None] * y + backward[:, :, 2, None]) * _FINE).round()
    return per_column.to(torch.int32), per_row.to(torch.int32)


def projected(backward: Tensor, height: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Where each pixel (x, y) comes from: x and y, (B, H, W) float32, of backward · (x, y, 1).

    `backward` lives on the CPU, float64, (B, 2, 3) for affine maps or (B, 3, 3) for perspective ones.
    """
    x, y = torch.arange(width, device=device), torch.arange(height, device=device)[:, None]
    coefficients = to_device(backward, device, torch.float32)[..., None, None]
    rows = [c[:, 0] * x + c[:, 1] * y + c[:, 2] for c in coefficients.unbind(1)]
    return (rows[0], rows[1]) if len(rows) == 2 else (rows[0] / rows[2], rows[1] / rows[2])


def sample(images: Tensor, x: Tensor, y: Tensor, *, outside: Outside, nearest: bool = False) -> Tensor:
    """The images at positions (x, y), float32 (B, H', W') in pixels from the first pixel's centre, bilinearly."""
    height, width = images.shape[-2:]
    kernels = fused("warps", images.device)
    if kernels is not None:
        sampled: Tensor = kernels.sampled(images, x, y, outside, nearest)
        return sampled
    grid = torch.stack([x * (2 / (width - 1)) - 1, y * (2 / (height - 1)) - 1], dim=-1)
    mode = "nearest" if nearest else "bilinear"
    return F.grid_sample(images, grid, mode=mode, padding_mode=_PADDING[outside], align_corners=True)


def sample_map(
    images: Tensor,
    backward: Tensor,
    *,
    outside: Outside,
    nearest: bool = False,
    snap: bool = False,
    size: tuple[int, int] | None = None,
) -> Tensor:
    """The images where maps lead: `sample` at what `projected` gives, where ``snap`` at multiples of 1/32 pixel.

    ``size`` is that of the result, if not the images' own.
    """
    height, width = size or images.shape[-2:]
    kernels = fused("warps", images.device)
    if kernels is not None:
        mapped: Tensor = kernels.mapped(images, backward.numpy(), (height, width), outside, nearest, snap)
        return mapped
    positions = projected(backward, height, width, images.device)
    x, y = map(snapped, positions) if snap else positions
    return sample(images, x, y, outside=outside, nearest=nearest)


def snapped(positions: Tensor) -> Tensor:
    """The nearest multiples of 1/32 pixel, for positions of any size."""
    return positions.nan_to_num(0.0).clamp_(-_FAR, _FAR).mul_(_STEPS).round_().div_(_STEPS)


def bilinear(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The images at positions (row, column), float64 (B, H', W') or what broadcasts to it; black outside the image.

    For images of levels or floats, in double precision. A whole position gives the very value of its pixel; beyond the
    last row or column the result fades to black within a pixel.
    """
    channels, height, width = images.shape[1:]
    kernels = compiled("doubles") if images.device.type == "cpu" else None
    if kernels is not None:
        shape = np.broadcast_shapes((len(images), 1, 1), rows.shape, columns.shape)
        y, x = (axis.expand(shape).contiguous() for axis in (rows, columns))
        out = torch.empty(len(images), channels, *y.shape[1:], dtype=torch.float64)
        shared_out(kernels.bilinear_at, [images.contiguous(), y, x, out])
        return out
    top, left = rows.floor(), columns.floor()
    down, right = (rows - top).unsqueeze(1), (columns - left).unsqueeze(1)
    flat = images.flatten(2)

    def tap(row: Tensor, column: Tensor) -> Tensor:
        seen = ((row >= 0) & (row < height)) & ((column >= 0) & (column < width))
        pixel = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).to(torch.int64)
        values = flat.gather(2, pixel.flatten(1)[:, None].expand(-1, channels, -1))
        return values.view(-1, channels, *pixel.shape[1:]).to(torch.float64).mul_(seen.unsqueeze(1))

    upper = tap(top, left) * (1 - right) + tap(top, left + 1) * right
    lower = tap(top + 1, left) * (1 - right) + tap(top + 1, left + 1) * right
    return upper * (1 - down) + lower * down


def displace(images: Tensor, fields: Tensor) -> Tensor:
    """Sample bilinearly at (x + dx, y + dy), fields (B, 2, H, W) of them; the border mirrors with its edge repeated."""
    height, width = images.shape[-2:]
    kernels = fused("warps", images.device)
    if kernels is not None:
        moved: Tensor = kernels.displaced(images, fields)
        return moved
    dx, dy = fields[:, 0], fields[:, 1]
    x = torch.arange(width, device=images.device, dtype=torch.float32)
    y = torch.arange(height, device=images.device, dtype=torch.float32)[:, None]
    grid = torch.stack([(dx + x).mul_(2).add_(1).div_(width), (dy + y).mul_(2).add_(1).div_(height)], dim=-1)
    return F.grid_sample(images, grid.sub_(1), mode="bilinear", padding_mode="reflection", align_corners=False)
