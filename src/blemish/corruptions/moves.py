"""Whether a corruption moves pixels, and where to: what labels of places have to know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from blemish.corruptions.severity import Params
from blemish.ops.positions import Positions

if TYPE_CHECKING:
    from blemish.corruptions.base import Corruption

Maps = Callable[[Tensor, Params, Any], Sequence[Positions]]
"""From what ``apply`` gets to where pixels come from: one map, or several that follow one another.

Of the images only shape and type count: there is nothing in them."""

NOT_STATED = "not stated"


@dataclass(frozen=True)
class Moves:
    """Whether pixels stay (``not at all``), move ``a little`` without a known map, or ``by a map``.

    ``a little`` is said of all that smears, shakes or mixes places within the image, or shows each colour elsewhere.
    Labels stay where they are then, as for those that do not move at all.
    """

    how: str
    maps: Maps | None = None


STILL = Moves("not at all")
A_LITTLE = Moves("a little")


@dataclass(frozen=True)
class _One:
    """An object rather than a closure, so that it can be sent to workers."""

    positions: Callable[[Tensor, Params, Any], Positions]

    def __call__(self, images: Tensor, params: Params, draw: Any) -> Sequence[Positions]:
        return [self.positions(images, params, draw)]


def by_map(positions: Callable[[Tensor, Params, Any], Positions]) -> Moves:
    """Pixels come from where a function says, which gets what ``apply`` gets, on the CPU."""
    return Moves("by a map", _One(positions))


def joint_moves(parts: Sequence[Moves | None], maps: Maps) -> Moves | None:
    """What a chain of corruptions does: by maps if any does, given those of all; None where one does not say."""
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    if any(part.maps is not None for part in known):
        return Moves("by a map", maps)
    return A_LITTLE if A_LITTLE in known else STILL


def unmoved(*corruptions: Corruption) -> tuple[Corruption, ...]:
    """Corruptions of a catalogue: those that do not say otherwise leave pixels where they are."""
    return tuple(unit if unit.moves is not None else replace(unit, moves=STILL) for unit in corruptions)
