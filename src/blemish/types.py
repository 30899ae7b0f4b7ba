"""Small shared types: what an image batch looks like, and how bad input is reported."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

__all__ = ["InputError", "Shape", "UnknownNameError"]


class InputError(ValueError):
    """Input that cannot be used. The message names it, and says what was expected."""


class UnknownNameError(InputError, KeyError):
    """A name that a mapping does not hold."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would quote it


class Shape(NamedTuple):
    """The shape of one image."""

    channels: int
    height: int
    width: int

    @classmethod
    def of(cls, images: Tensor) -> Shape:
        """The shape shared by a (B, C, H, W) batch."""
        return cls(*images.shape[-3:])
