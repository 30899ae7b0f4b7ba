"""What an image batch looks like."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.errors import InputError


class Shape(NamedTuple):
    """The shape of one image."""

    channels: int
    height: int
    width: int

    @classmethod
    def of(cls, images: Tensor) -> Shape:
        """The shape shared by a (B, C, H, W) batch."""
        return cls(*images.shape[-3:])


class Square(NamedTuple):
    """A square of ``side`` pixels that shows the middle of an image, whatever its shape.

    ``centre`` is the share of each side that is kept before both become ``side`` pixels long (bilinear, antialiased).
    """

    side: int
    centre: float = 1.0

    def __str__(self) -> str:
        part = "all" if self.centre == 1 else f"the middle {100 * self.centre:g} % of each side"
        return f"{part}, as {self.side}×{self.side} pixels"

    def check(self, *, least: int) -> None:
        """Refuse a square with fewer pixels on a side, or of no part of an image."""
        if self.side < least:
            raise InputError(f"a square of {self.side}×{self.side} pixels; expected at least {least}×{least}")
        if not 0 < self.centre <= 1:
            raise InputError(f"the middle {self.centre:g} of each side; expected a share above 0 and up to 1")

    def kept(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of the middle.

        >>> Square(299, 0.875).kept(375, 500)
        (328, 437)
        """
        return int(height * self.centre), int(width * self.centre)


def odd_kind(values: Tensor) -> str | None:
    """How a tensor is not an ordinary one, whose values lie in memory one by one; None where it is."""
    if values.is_nested:
        return "a nested tensor"
    if values.is_meta:
        return "a tensor without values (on the device meta)"
    if values.layout != torch.strided:
        return f"a sparse tensor ({values.layout})"
    return f"a quantised tensor ({values.dtype})" if values.is_quantized else None


def check_dense(values: Tensor, name: str) -> None:
    """Refuse a tensor that is not an ordinary one; ``name`` is what the message calls it."""
    if odd := odd_kind(values):
        raise InputError(f"{name} in {odd}; expected an ordinary one")
