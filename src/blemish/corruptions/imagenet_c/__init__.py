"""The nineteen corruptions of ImageNet-C."""

from __future__ import annotations

__all__ = ["SOURCE"]

SOURCE = "Hendrycks and Dietterich, ICLR 2019: the published generators"
