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
