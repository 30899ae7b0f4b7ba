"""What the kernels offer: the same functions as the plain operations, on tensors that lie on a GPU."""

from __future__ import annotations

from blemish.ops.fused.medians import LARGEST_MEDIAN, medians
from blemish.ops.fused.neighbours import line_sums
from blemish.ops.fused.pixels import normalised, poisson_counts, quantised
from blemish.ops.fused.regions import connected

__all__ = [
    "LARGEST_MEDIAN",
    "connected",
    "line_sums",
    "medians",
    "normalised",
    "poisson_counts",
    "quantised",
]
