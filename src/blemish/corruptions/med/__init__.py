"""MedMNIST-C: the corruptions of medical images, with settings for each of its twelve data sets."""

from __future__ import annotations

from blemish.corruptions.base import Corruption
from blemish.corruptions.med.artefacts import ARTEFACTS
from blemish.corruptions.med.characters import characters
from blemish.corruptions.med.light import LIGHT
from blemish.corruptions.med.shared import SHARED
from blemish.corruptions.moves import unmoved

__all__ = ["MED"]

MED: tuple[Corruption, ...] = unmoved(*SHARED, *LIGHT, *ARTEFACTS, characters)
