"""Where the candidates come from, and their severities, which are ours: none were chosen for them."""

from __future__ import annotations

from functools import partial

from blemish.corruptions.base import Corruption

SOURCE = (
    "Mintun, Kirillov and Xie, NeurIPS 2021: a candidate for C̄ that was not chosen; written from its description, "
    "without pixels to compare with"
)

unit = partial(Corruption, family="cbar", source=SOURCE)
"""Declares one of the candidates."""


def scanned(low: float, high: float) -> tuple[float, ...]:
    """Five of the ten magnitudes that the authors tried within this range: every second one, up to the highest.

    >>> scanned(2.5, 10)
    (4.0, 5.5, 7.0, 8.5, 10.0)
    """
    return tuple(low + (high - low) * step / 10 for step in (2, 4, 6, 8, 10))
