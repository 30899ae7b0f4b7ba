"""The fifteen candidates for C̄ that were not chosen, for studies of overlap and selection.

Written from their descriptions. No pixels of the reference were at hand, so they are not verified as the fifteen chosen
ones are; severities are five of the ten magnitudes that the authors scanned.
"""

from __future__ import annotations

from blemish.corruptions.base import Corruption
from blemish.corruptions.cbar.candidates.colour import COLOURS
from blemish.corruptions.cbar.candidates.patterns import PATTERNS
from blemish.corruptions.cbar.candidates.warps import WARPS
from blemish.corruptions.moves import unmoved

__all__ = ["CANDIDATES"]

CANDIDATES: tuple[Corruption, ...] = unmoved(*PATTERNS, *WARPS, *COLOURS)
