"""What the kernels offer: the same functions as the plain operations, on tensors that lie on a GPU."""

from __future__ import annotations

from blemish.kernels.jpeg import jpeg
from blemish.kernels.pixels import poisson_counts, quantised, zoom_mean
from blemish.kernels.words import expanded, glass_sources

__all__ = ["expanded", "glass_sources", "jpeg", "poisson_counts", "quantised", "zoom_mean"]
