"""Where ImageNet-NOC's corruptions and their ranges were published. A severity is drawn from the range per image."""

from __future__ import annotations

FIGURE_5 = "Laugros, Caplier and Ospici, ImageNet-NOC, Figure 5"
FIGURE_6 = "Laugros, Caplier and Ospici, ImageNet-NOC, Figure 6"
