"""Where ImageNet-C's corruptions and their tables were published."""

from __future__ import annotations

SOURCE = "Hendrycks and Dietterich, ICLR 2019: the published generators"
