"""What the kernels offer: the same functions as the plain operations, on tensors that lie on a GPU."""

from __future__ import annotations

from blemish.ops.fused.jpeg import jpeg
from blemish.ops.fused.medians import LARGEST_MEDIAN, medians
from blemish.ops.fused.neighbours import gaussian_rows_and_columns, line_sums, zoom_mean
from blemish.ops.fused.pixels import normalised, poisson_counts, quantised
from blemish.ops.fused.regions import connected
from blemish.ops.fused.words import expanded, glass_sources

__all__ = [
    "LARGEST_MEDIAN",
    "connected",
    "expanded",
    "gaussian_rows_and_columns",
    "glass_sources",
    "jpeg",
    "line_sums",
    "medians",
    "normalised",
    "poisson_counts",
    "quantised",
    "zoom_mean",
]
