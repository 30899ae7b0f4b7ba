"""The six distortions of LAION-C, in the order of their publication."""

from __future__ import annotations

from blemish.corruptions.base import Corruption
from blemish.corruptions.laion.patterns import glitched, luminance_checkerboard, vertical_lines
from blemish.corruptions.laion.pieces import geometric_shapes, mosaic, stickers, tiled_with
from blemish.corruptions.moves import unmoved

__all__ = ["LAION_C", "tiled_with"]

LAION_C: tuple[Corruption, ...] = unmoved(
    mosaic,
    glitched,
    vertical_lines,
    geometric_shapes,
    stickers,
    luminance_checkerboard,
)
