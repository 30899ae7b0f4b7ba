"""Drawing on batches in plain torch: discs, polygons and strokes. Pixel centres lie at whole numbers.

Shapes have the batch in front. Nothing here asks the device for a number, and counts and masks are whole numbers, so
that neither the batch nor the device changes them.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.ops.fused import fused
from blemish.ops.transfer import to_device


def disc_counts(centres: Tensor, radii: Tensor, height: int, width: int) -> Tensor:
    """How many discs cover each pixel, uint8 (B, 1, H, W).

    `centres` (B, N, 2) as (x, y) and `radii` (B, N) live on the device; a negative radius draws nothing.
    """
    device = centres.device
    down = torch.arange(height, device=device) - centres[..., 1:]
    radii = radii[..., None]
    chord = radii * radii - down * down
    # Half the width of the disc in each row; a row that it does not meet has none, not even its middle.
    half = torch.where((chord >= 0) & (radii >= 0), chord.clamp(min=0).sqrt_(), -1)
    kernels = fused("drawing", device)
    if kernels is not None:
        covers: Tensor = kernels.disc_counts(centres[..., 0], half, width)
        return covers
    across = (torch.arange(width, device=device) - centres[..., :1]).abs_()
    counts = torch.zeros((len(centres), 1, height, width), dtype=torch.uint8, device=device)
    for x, reach in zip(across.unbind(1), half.unbind(1), strict=True):
        counts.add_((x[:, None, :] <= reach[:, :, None]).unsqueeze_(1))
    return counts


def distances(centres: Tensor, height: int, width: int) -> Tensor:
    """The distance of each pixel from a point per image, (B, 1, H, W); `centres` (B, 2) as (x, y), on the device."""
    across = torch.arange(width, device=centres.device) - centres[:, :1]
    down = torch.arange(height, device=centres.device) - centres[:, 1:]
    return ((across * across)[:, None, None, :] + (down * down)[:, None, :, None]).sqrt_()


def polygon_union(vertices: Tensor, drawn: Tensor, height: int, width: int, device: torch.device) -> Tensor:
    """Which pixels lie in any of several polygons, bool (B, 1, H, W).

    `vertices` (B, N, K, 2) as (x, y), float64, and `drawn` (B, N), which of the polygons exist, are sent to the device.
    A polygon that crosses itself is filled by the even-odd rule.
    """
    start, drawn = to_device(vertices, device), to_device(drawn, device)
    end = start.roll(-1, 2)
    y = torch.arange(height, dtype=torch.float64, device=device)
    meets = (start[..., 1:] <= y) != (end[..., 1:] <= y)
    rise = end[..., 1:] - start[..., 1:]
    slope = (end[..., :1] - start[..., :1]) / rise.masked_fill(rise == 0, 1)
    crossing = start[..., :1] + (y - start[..., 1:]) * slope
    crossing = crossing.masked_fill_(~(meets & drawn[..., None, None]), width)
    # A pixel is inside if an odd number of edges lies to its left. Short whole numbers are compared fastest.
    edges = crossing.ceil_().clamp_(-1, width).to(torch.int16)
    kernels = fused("drawing", device)
    if kernels is not None:
        union: Tensor = kernels.odd_union(edges, width)
        return union
    edges = edges.unsqueeze(-1)
    x = torch.arange(width, dtype=torch.int16, device=device)
    inside = torch.zeros((*vertices.shape[:2], height, width), dtype=torch.bool, device=device)
    for edge in edges.unbind(2):
        inside ^= edge <= x
    return inside.any(1, keepdim=True)


def stroke_mask(
    start: Tensor, slant: float, drawn: Tensor, length: int, thickness: int, size: tuple[int, int]
) -> Tensor:
    """Falling strokes of one direction, 1 where drawn and 0 elsewhere, float32 (B, 1, H, W).

    A stroke has a pixel in each of `length` rows, and more to the right of it where it is thicker. `start` (B, N, 2)
    as (x, y) in whole pixels, `slant` is how far a stroke moves to the right, and `drawn` (B, N) says which there are.
    """
    height, width = size
    steps = torch.arange(length, device=start.device)
    drift = (steps * (slant / max(1, length - 1))).round_()
    x = (start[..., :1] + drift)[..., None] + torch.arange(thickness, device=start.device)
    y = (start[..., 1:] + steps)[..., None]
    seen = (x >= 0) & (x < width) & (y >= 0) & (y < height) & drawn[..., None, None]
    # What is not seen goes to a place behind the image.
    positions = torch.where(seen, y.to(torch.int64) * width + x.to(torch.int64), height * width)
    plane = torch.zeros((len(start), height * width + 1), device=start.device, dtype=torch.float32)
    return plane.scatter_(1, positions.flatten(1), 1.0)[:, :-1].view(-1, 1, height, width)


def paint_discs(images: Tensor, centres: Tensor, radii: Tensor, colours: Tensor, opacity: Tensor, reach: int) -> Tensor:
    """Paint small discs one over the other.

    `centres` (B, N, 2) as (x, y) in whole pixels, `radii` (B, N), none above `reach`, `colours` (B, N, C) and `opacity`
    (B, N), on the device.
    """
    channels, height, width = images.shape[1:]
    step = torch.arange(-reach, reach + 1, device=images.device)
    square = (step * step + (step * step)[:, None]).flatten()
    x = centres[..., :1] + step.repeat(len(step))
    y = centres[..., 1:] + step.repeat_interleave(len(step))
    seen = (x >= 0) & (x < width) & (y >= 0) & (y < height)
    positions = torch.where(seen, y.to(torch.int64) * width + x.to(torch.int64), height * width)
    weights = (square <= (radii * radii)[..., None]) * opacity[..., None]
    # What is not seen goes to a place behind the image.
    flat = F.pad(images.flatten(2), (0, 1))
    for position, weight, colour in zip(positions.unbind(1), weights.unbind(1), colours.unbind(1), strict=True):
        index = position[:, None, :].expand(-1, channels, -1)
        below = flat.gather(2, index)
        flat.scatter_(2, index, below + (colour[..., None] - below) * weight[:, None, :])
    return flat[..., :-1].reshape(images.shape)
