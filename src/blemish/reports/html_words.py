"""The words of the page: its header, its footer and what its terms mean."""

from __future__ import annotations

from collections.abc import Sequence

from blemish.metrics.titles import both_names
from blemish.reports.markup import Markup, element
from blemish.reports.reading import Reading
from blemish.version import VERSION

__all__ = ["footer", "header", "terms"]

_TERMS = {
    "error": ("Error", "The share of images whose first answer is not the label."),
    "mce": (
        "CE, mCE",
        (
            "Corruption error: the summed error over the severities of a corruption, divided by the baseline's; mCE is "
            "its mean over corruptions. 100 % is as bad as the baseline (Hendrycks and Dietterich 2019)."
        ),
    ),
    "relative_mce": (
        "Relative CE, relative mCE",
        "The same of the rise above the clean error: how much a model loses, whatever it could do before.",
    ),
    "robustness": (
        "Robustness score R",
        "Accuracy on corrupted images divided by accuracy on clean ones; 1 is no loss.",
    ),
    "residual": ("Residual robustness", "Clean accuracy less corrupted accuracy: the accuracy lost, in points."),
    "ece": (
        "ECE",
        (
            "Expected calibration error: how far confidence and accuracy lie apart, on average over 15 bins of "
            "confidence (Guo et al. 2017)."
        ),
    ),
    "flips": (
        "Flip probability, FR, mFR",
        (
            "How often the first answer changes between frames of a sequence; FR is that divided by the baseline's, "
            "mFR the mean over sequences (Hendrycks and Dietterich 2019)."
        ),
    ),
    "ut5d": (
        "uT5D, T5D, mT5D",
        "How far the five first answers change places between frames; divided by the baseline's, and the mean of that.",
    ),
    "zipf": ("Zipf distance", "How far the whole ranking moves between frames, weighted towards its top."),
    "natural_gap": (
        "Natural gap",
        "Accuracy on the clean images of the same classes less accuracy on the natural set, in points.",
    ),
}


def header(readings: Sequence[Reading], warnings: Sequence[str]) -> Markup:
    """The title, what was measured in one line, and what the reader is warned of."""
    runs = [reading.run for reading in readings]
    data = [run.info["data"] for run in runs]
    names = ", ".join(dict.fromkeys(f"{entry.get('name', 'images')} ({_amount(entry)})" for entry in data))
    models = "1 model" if len(runs) == 1 else f"{len(runs)} models"
    conditions = max(len(run.conditions) for run in runs)
    notes = None
    if warnings:
        items = [element("li", text) for text in warnings]
        notes = element(
            "aside", element("h2", "Read this first"), element("ul", items), class_="notes", aria_label="Warnings"
        )
    return element(
        "header",
        element("p", "Robustness report", class_="quiet small kicker"),
        element("h1", readings[0].title),
        element("p", f"{models} under {conditions} conditions, on {names}.", class_="lead"),
        notes,
        class_="page",
    )


def _amount(entry: dict[str, object]) -> str:
    selection = entry.get("selection", "all")
    count = entry.get("images", "?")
    return f"{count} images" if selection == "all" else f"{selection}"


def terms(readings: Sequence[Reading]) -> Markup:
    """The metrics that this page shows, and how intervals are made."""
    shown = [
        (element("dt", title), element("dd", text))
        for name, (title, text) in _TERMS.items()
        if any(reading.get(own, "benchmark") for reading in readings for own in both_names([name]))
    ]
    level = readings[0].scores.level
    interval = (
        f"Intervals are of {100 * level:g} % and cover the choice of images, which are drawn anew "
        f"{readings[0].scores.replicates:,} times, all conditions of an image together. They do not cover other seeds, "
        "other training runs or other kinds of images."
    )
    return element("dl", shown, element("dt", "Intervals"), element("dd", interval), class_="terms")


def footer() -> Markup:
    """Where the page comes from."""
    return element(
        "p",
        f"Made by blemish {VERSION} from the records of each run. The page holds all that it shows and loads nothing.",
    )
