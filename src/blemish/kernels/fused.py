"""What the kernels offer: the same functions as the plain operations, on tensors that lie on a GPU."""

from __future__ import annotations

from blemish.kernels.jpeg import jpeg
from blemish.kernels.medians import LARGEST_MEDIAN, medians
from blemish.kernels.neighbours import gaussian_rows_and_columns, line_sums, zoom_mean
from blemish.kernels.pixels import normalised, poisson_counts, quantised
from blemish.kernels.regions import connected
from blemish.kernels.words import expanded, glass_sources

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
