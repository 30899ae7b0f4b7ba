"""What Syn2Nat's candidates share: where they come from, and how values are drawn from their published ranges."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, per_image
from blemish.corruptions.severity import Params

SOURCE = "Laugros, Caplier and Ospici, Syn2Nat; made with albumentations 0.5.2"

unit = partial(Corruption, family="syn2nat", severities=(5,), source=SOURCE)
"""Declares one of the candidates."""

# The reference rounds where the base truncates.
HALF_LEVEL = 0.5 / 255


def span(rank: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The value at a rank in 0 … 1 of a range."""
    return low + rank * (high - low)


class Ranks(NamedTuple):
    """Places in the ranges of up to three parameters, uniform in (0, 1): (B, 3, 1, 1)."""

    ranks: Tensor

    def signed(self, index: int) -> Tensor:
        """One of them as (B, 1, 1, 1) in (−1, 1)."""
        return self.ranks[:, index : index + 1] * 2 - 1

    def within(self, index: int, params: Params, name: str) -> Tensor:
        """One of them as a value between the parameters `name_low` and `name_high`."""
        rank = self.ranks[:, index : index + 1]
        return span(rank, per_image(params[f"{name}_low"], rank), per_image(params[f"{name}_high"], rank))


def draw_ranks(shape: Shape, params: Params, rng: CounterRng) -> Ranks:
    """Three ranks for each image."""
    return Ranks(rng.uniforms("ranks", 3, 1, 1))
