"""The metrics by name, and how their numbers are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["MEANS", "TITLES", "Scope", "Title"]

Scope = Literal["benchmark", "family", "corruption", "condition", "sequence", "natural"]
"""What a number is about: everything, or one part of it."""


@dataclass(frozen=True)
class Title:
    """How a metric is shown: its name, the factor and unit of its numbers, and whether more is better."""

    title: str
    scale: float = 100.0
    unit: str = "%"
    higher_is_better: bool = False


TITLES = {
    "error": Title("error"),
    "accuracy": Title("accuracy", higher_is_better=True),
    "confidence": Title("mean confidence", higher_is_better=True),
    "ece": Title("expected calibration error"),
    "ce": Title("CE"),
    "mce": Title("mCE"),
    "relative_ce": Title("relative CE"),
    "relative_mce": Title("relative mCE"),
    "robustness": Title("robustness score R", scale=1.0, unit="", higher_is_better=True),
    "residual": Title("residual robustness"),
    "flips": Title("flip probability"),
    "fr": Title("flip rate FR"),
    "mfr": Title("mFR"),
    "ut5d": Title("top-5 distance uT5D", scale=1.0, unit=""),
    "t5d": Title("T5D"),
    "mt5d": Title("mT5D"),
    "zipf": Title("Zipf distance", scale=1.0, unit=""),
    "natural_gap": Title("natural gap"),
}
"""The metrics by name."""

MEANS = {"ce": "mce", "relative_ce": "relative_mce", "fr": "mfr", "t5d": "mt5d"}
"""What the mean of a metric over a whole benchmark is called, where that is another name."""
