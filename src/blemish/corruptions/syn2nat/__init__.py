"""The forty candidates of Syn2Nat: severity 5 is the published setting, lower ones lead linearly to the identity."""

from __future__ import annotations

from torch import Tensor

__all__ = ["HALF_LEVEL", "SOURCE", "span"]

SOURCE = "Laugros, Caplier and Ospici, Syn2Nat; made with albumentations 0.5.2"

# The reference rounds where the base truncates.
HALF_LEVEL = 0.5 / 255


def span(rank: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The value at a rank in 0 … 1 of a range."""
    return low + rank * (high - low)
