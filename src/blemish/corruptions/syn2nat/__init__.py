"""The forty candidates of Syn2Nat. Severity 5 is the published setting; lower ones lead linearly to the identity."""

from __future__ import annotations

from blemish.corruptions.base import Corruption
from blemish.corruptions.moves import unmoved
from blemish.corruptions.syn2nat.bend import BENDS
from blemish.corruptions.syn2nat.blur import BLURS
from blemish.corruptions.syn2nat.colour import COLOURS
from blemish.corruptions.syn2nat.noise import NOISES
from blemish.corruptions.syn2nat.rearrange import REARRANGEMENTS
from blemish.corruptions.syn2nat.shape import OCCLUSIONS
from blemish.corruptions.syn2nat.warp import WARPS
from blemish.corruptions.syn2nat.weather import WEATHER

__all__ = ["SYN2NAT"]

SYN2NAT: tuple[Corruption, ...] = unmoved(
    *sorted(
        (*BENDS, *BLURS, *COLOURS, *NOISES, *OCCLUSIONS, *REARRANGEMENTS, *WARPS, *WEATHER),
        key=lambda candidate: candidate.name,
    )
)
