"""The 23 corruptions from which ImageNet-NOC was selected, in the order of their publication."""

from __future__ import annotations

from blemish.corruptions.base import Corruption
from blemish.corruptions.moves import unmoved
from blemish.corruptions.noc.covers import COVERS
from blemish.corruptions.noc.geometry import GEOMETRY
from blemish.corruptions.noc.light import LIGHT
from blemish.corruptions.noc.shapes import SHAPES
from blemish.corruptions.noc.texture import TEXTURE

__all__ = ["NOC"]

NOC: tuple[Corruption, ...] = unmoved(*TEXTURE, *SHAPES, *COVERS, *GEOMETRY, *LIGHT)
