"""The parametric stimuli of the comparison with humans: the levels that observers saw, and all between them.

Not among them: eidolons, whose formulas are in no published file but a toolbox, and sets of images of their own
(sketches, silhouettes, edges, stylised images and cue conflicts).
"""

from __future__ import annotations

from blemish.corruptions.base import Corruption
from blemish.corruptions.human import frequencies, pixels
from blemish.corruptions.moves import unmoved

__all__ = ["HUMAN"]

HUMAN: tuple[Corruption, ...] = unmoved(
    pixels.colour,
    pixels.contrast,
    pixels.uniform_noise,
    frequencies.low_pass,
    frequencies.high_pass,
    frequencies.phase_noise,
    frequencies.power_equalisation,
    pixels.rotation,
    pixels.false_colour,
)
