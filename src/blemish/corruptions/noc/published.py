"""Where ImageNet-NOC's corruptions and their ranges were published. A severity is drawn from the range per image."""

from __future__ import annotations

from functools import partial

from blemish.corruptions.base import Corruption

FIGURE_5 = "Laugros, Caplier and Ospici, ImageNet-NOC, Figure 5"
FIGURE_6 = "Laugros, Caplier and Ospici, ImageNet-NOC, Figure 6"

unit = partial(Corruption, family="noc", severities="1-5")
"""Declares one of the corruptions."""
