"""A batch of planes in one flat array, so that a shifted copy is a contiguous slice whatever its direction.

The same operators run in NumPy on the CPU, where short passes over small integers cost half of what torch's do, and in
torch elsewhere.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

Flat = Any
"""A flat array: NumPy's on the CPU, a tensor elsewhere."""


def in_numpy(device: torch.device) -> bool:
    """Whether NumPy works on what lies there."""
    return device.type == "cpu"


class Grid:
    """A batch of images in one flat array, each with a frame around it, and a margin at both ends of the array."""

    def __init__(self, images: Tensor, *, frame: int = 1, reach: int = 2) -> None:
        self.batch, self.frame = len(images), frame
        self.height, self.width = images.shape[-2:]
        self.rows, self.stride = self.height + 2 * frame, self.width + 2 * frame
        self.count = self.batch * self.rows * self.stride
        self.margin = reach * (self.stride + 1)
        self.device = images.device
        self.in_numpy = in_numpy(images.device)
        self.library: Any = np if self.in_numpy else torch

    def plane(self, value: int, kind: str) -> Flat:
        """One value everywhere, margins included."""
        size = self.count + 2 * self.margin
        if self.in_numpy:
            return np.full(size, value, kind)
        return torch.full((size,), value, dtype=getattr(torch, kind), device=self.device)

    def cast(self, values: Flat, kind: str) -> Flat:
        """Values of another type."""
        return values.astype(kind) if self.in_numpy else values.to(getattr(torch, kind))

    def at(self, plane: Flat, shift: int = 0, extra: int = 0) -> Flat:
        """For every pixel in flat order the value that many places on; `extra` more pixels at both ends."""
        start = self.margin + shift - extra
        return plane[start : start + self.count + 2 * extra]

    def framed(self, values: Flat) -> Flat:
        """Images with their frames."""
        return values.reshape(self.batch, 1, self.rows, self.stride)

    def inside(self, values: Flat) -> Flat:
        """Images without their frames."""
        inside = slice(self.frame, -self.frame)
        return self.framed(values)[..., inside, inside]

    def images(self, values: Flat) -> Tensor:
        """Images without their frames, as a tensor."""
        inside = self.inside(values)
        return torch.from_numpy(inside) if self.in_numpy else inside

    def load(self, plane: Flat, images: Tensor) -> Flat:
        """Puts images into a plane."""
        self.inside(self.at(plane))[...] = images.numpy() if self.in_numpy else images
        return plane

    def fill_border(self, plane: Flat, border: Literal["replicate", "reflect101"]) -> Flat:
        """Gives the pixels just outside the images their values."""
        edge = self.frame - 1
        ring = self.framed(self.at(plane))[..., edge : self.rows - edge, edge : self.stride - edge]
        inner = 1 if border == "replicate" else 2
        for outside, inside in ((0, inner), (-1, -1 - inner)):
            ring[..., outside, :] = ring[..., inside, :]
        for outside, inside in ((0, inner), (-1, -1 - inner)):
            ring[..., outside] = ring[..., inside]
        return plane
