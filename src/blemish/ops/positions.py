"""Where the pixels of a warped image come from, and label images that are warped alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from blemish.ops.warp import Outside


class Positions(NamedTuple):
    """For every pixel of the results the place in the original that it shows, (B, H, W) float64 on the CPU.

    The first pixel's centre is (0, 0). NaN stands for nothing of the image: something opaque is painted there. What
    ``outside`` the original stands is black, or a repetition of what is inside; places there are given unfolded. Where
    ``copies`` is true a pixel shows a repetition at a place inside. ``whole`` says that each pixel is a whole one of
    the original, whose neighbours may come from elsewhere; otherwise the map is as good as continuous.
    """

    x: Tensor
    y: Tensor
    outside: Outside = "zeros"
    whole: bool = False
    copies: Tensor | None = None


def pixel_places(count: int, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Every pixel's own place, x and y, (B, H, W) float64."""
    x = torch.arange(width, dtype=torch.float64).expand(count, height, width)
    y = torch.arange(height, dtype=torch.float64)[:, None].expand(count, height, width)
    return x, y


def in_place(images: Tensor, shown: Tensor) -> Positions:
    """Pixels where they are, and something opaque where ``shown``, which is or broadcasts to (B, H, W), is false."""
    x, y = (torch.where(shown, places, torch.nan) for places in pixel_places(len(images), *images.shape[-2:]))
    return Positions(x, y, whole=True)


def from_map(images: Tensor, backward: Tensor, outside: Outside, *, whole: bool = False) -> Positions:
    """The places at which a map leads pixels (x, y): backward · (x, y, 1), with (B, 2, 3) or (B, 3, 3) float64."""
    x, y = pixel_places(len(images), *images.shape[-2:])
    rows = [row[:, :1, None] * x + row[:, 1:2, None] * y + row[:, 2:, None] for row in backward.unbind(1)]
    if len(rows) == 3:
        rows = [rows[0] / rows[2], rows[1] / rows[2]]
    return Positions(rows[0], rows[1], outside, whole)


def joined(parts: Sequence[tuple[Tensor, Positions]], count: int, height: int, width: int) -> Positions:
    """The positions of all of ``count`` images from those of some rows each; the others stay where they are."""
    first = parts[0][1]
    x, y = (places.clone() for places in pixel_places(count, height, width))
    copies = None if all(part.copies is None for _, part in parts) else torch.zeros_like(x, dtype=torch.bool)
    for rows, part in parts:
        x[rows], y[rows] = part.x, part.y
        if copies is not None and part.copies is not None:
            copies[rows] = part.copies
    return Positions(x, y, first.outside, first.whole, copies)


def folded(places: Tensor, size: int, outside: Outside) -> Tensor:
    """Places along a side brought inside as the border repeats the image; black ones stay outside."""
    if outside == "replicate":
        return places.clamp(0, size - 1)
    if outside == "reflect101":
        period = 2 * (size - 1)
        inside = places.remainder(period)
        return torch.minimum(inside, period - inside)
    return places


def moved_masks(masks: Tensor, positions: Positions, fill: float) -> Tensor:
    """Label images (B, N, H, W) as the images were moved: each pixel has the label of the nearest one that it shows.

    Repetitions beyond the border have their labels too. Where nothing of the image is shown, the label is ``fill``.
    """
    height, width = masks.shape[-2:]
    x, y = folded(positions.x, width, positions.outside), folded(positions.y, height, positions.outside)
    column, row = (places.nan_to_num(-1, -1, -1).clamp(-1, 2**24).round().to(torch.int64) for places in (x, y))
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    flat = torch.where(inside, row * width + column, 0).flatten(1)
    labels = masks.flatten(2).gather(2, flat[:, None].expand(-1, masks.shape[1], -1)).view(masks.shape)
    return torch.where(inside[:, None], labels, torch.full((), fill, dtype=torch.float64).to(masks.dtype))
