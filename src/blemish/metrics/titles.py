"""The metrics by name, and how their numbers are shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

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
    "mean_ce": Title("mean CE"),
    "relative_ce": Title("relative CE"),
    "relative_mce": Title("relative mCE"),
    "mean_relative_ce": Title("mean relative CE"),
    "balanced_error": Title("balanced error"),
    "be": Title("BE"),
    "mbe": Title("mean BE"),
    "mean_be": Title("mean BE"),
    "relative_be": Title("relative BE"),
    "relative_mbe": Title("mean relative BE"),
    "mean_relative_be": Title("mean relative BE"),
    "robustness": Title("robustness score R", scale=1.0, unit="", higher_is_better=True),
    "residual": Title("residual robustness"),
    "flips": Title("flip probability"),
    "fr": Title("flip rate FR"),
    "mfr": Title("mFR"),
    "mean_fr": Title("mean flip rate FR"),
    "ut5d": Title("top-5 distance uT5D", scale=1.0, unit=""),
    "t5d": Title("T5D"),
    "mt5d": Title("mT5D"),
    "mean_t5d": Title("mean T5D"),
    "zipf": Title("Zipf distance", scale=1.0, unit=""),
    "natural_gap": Title("natural gap"),
    "score": Title("score", scale=1.0, unit="", higher_is_better=True),
    "miou": Title("mIoU", higher_is_better=True),
    "pixel_accuracy": Title("pixel accuracy", higher_is_better=True),
    "ap": Title("AP", higher_is_better=True),
    "ap50": Title("AP50", higher_is_better=True),
    "ap75": Title("AP75", higher_is_better=True),
    "ap_small": Title("AP of small objects", higher_is_better=True),
    "ap_medium": Title("AP of medium objects", higher_is_better=True),
    "ap_large": Title("AP of large objects", higher_is_better=True),
    "rpc": Title("rPC", higher_is_better=True),
    "cd": Title("CD"),
    "mcd": Title("mCD"),
    "mean_cd": Title("mean CD"),
    "rcd": Title("rCD"),
    "mrcd": Title("mrCD"),
    "mean_rcd": Title("mean rCD"),
    "effective_robustness": Title("effective robustness", unit="points", higher_is_better=True),
    "effective_robustness_standard": Title(
        "effective robustness against standard training", unit="points", higher_is_better=True
    ),
}
"""The metrics by name."""

MEANS = {
    "ce": "mce",
    "relative_ce": "relative_mce",
    "fr": "mfr",
    "t5d": "mt5d",
    "be": "mbe",
    "relative_be": "relative_mbe",
    "cd": "mcd",
    "rcd": "mrcd",
}
"""What the mean of a metric over a whole benchmark is called, where that is another name."""

SUMMARY = (
    "score",
    *("miou", "pixel_accuracy"),
    *("ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large"),
    "rpc",
    "mcd",
    "mrcd",
    "error",
    "balanced_error",
    "mbe",
    "relative_mbe",
    "mce",
    "relative_mce",
    "robustness",
    "residual",
    "ece",
    "flips",
    "mfr",
    "ut5d",
    "mt5d",
    "zipf",
    "natural_gap",
)
"""The means that sum up a benchmark, in the order in which they are shown."""

_PARTIAL = {
    "mce": "mean_ce",
    "relative_mce": "mean_relative_ce",
    "mfr": "mean_fr",
    "mt5d": "mean_t5d",
    "mbe": "mean_be",
    "relative_mbe": "mean_relative_be",
    "mcd": "mean_cd",
    "mrcd": "mean_rcd",
}
_TITLED_MEAN = (
    "error",
    "accuracy",
    "balanced_error",
    "robustness",
    "residual",
    "ece",
    "flips",
    "ut5d",
    "zipf",
    "natural_gap",
)
_PERFORMANCE = ("score", "miou", "pixel_accuracy", "ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large")
_HEADLINES = ("score", "miou", "ap")
"""Their means over a benchmark are what the literature of detection calls mPC."""


@dataclass(frozen=True)
class Part:
    """Some conditions of a benchmark, clean images not counted: the mean over them is not the benchmark's number."""

    conditions: int
    whole: int
    benchmark: str

    def __str__(self) -> str:
        return f"over {self.conditions} of {self.whole} conditions"


def partial_name(name: str) -> str:
    """The name of a mean over a part of a benchmark: that of the whole is reserved for all conditions.

    >>> partial_name("mce"), partial_name("error")
    ('mean_ce', 'error')
    """
    return _PARTIAL.get(name, name)


def both_names(names: Iterable[str]) -> tuple[str, ...]:
    """Names of means over benchmarks, each followed by that of parts where it is another."""
    return tuple(dict.fromkeys(name for whole in names for name in (whole, partial_name(whole))))


def whole_title(name: str, part: Part | None = None) -> str:
    """The title of a mean over a benchmark, or over a part of one.

    >>> whole_title("error"), whole_title("mean_ce", Part(20, 75, "imagenet-c"))
    ('mean error', 'mean CE over 20 of 75 conditions')
    """
    title = TITLES[name].title
    text = f"mean {title}" if name in (*_TITLED_MEAN, *_PERFORMANCE) else title
    text += " (mPC)" if name in _HEADLINES and part is None else ""
    return text if part is None else f"{text} {part}"
