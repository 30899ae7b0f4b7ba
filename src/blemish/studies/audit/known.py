"""The accuracy that a model is known to have on clean images: published, said by its source, or by the user."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from blemish.core.errors import InputError
from blemish.core.statistics import wilson_interval
from blemish.evaluation.records import Records
from blemish.metrics.testbed import line_models
from blemish.metrics.timm_table import timm_results
from blemish.models.card import ModelCard
from blemish.studies.audit.findings import Check, Finding

# A false alarm in a hundred audits of a model that is what it should be.
_LEVEL = 0.99
_TIMM, _TORCHVISION, _FIRST_WEIGHTS = "timm:", "torchvision:", ".IMAGENET1K_V1"
_VALIDATION = re.compile(r"ILSVRC2012_val_\d{8}")
# Accuracies at several sizes are published for some models, and which was meant is not always said.
_ROUNDING = 0.0005


@dataclass(frozen=True)
class Expected:
    """An accuracy as a rate, from ``low`` to ``high`` where there are several, and who says so."""

    low: float
    high: float
    said_by: str


def published_accuracy(card: ModelCard | None, tag: str = "") -> Expected | None:
    """What is published of a model on ImageNet's validation images; ``tag`` names its weights, where its name does not.

    >>> published_accuracy(ModelCard(source="timm:resnet50.a1_in1k")).said_by
    'timm, of resnet50.a1_in1k'
    """
    if card is None:
        return None
    source, claims = card.source, [claim for claim in card.claims if claim.of_imagenet]
    if claims:
        rates = [claim.accuracy for claim in claims]
        return Expected(min(rates), max(rates), claims[0].said_by)
    if source.startswith(_TIMM):
        name = source.removeprefix(_TIMM)
        rows = timm_results().get(name) or timm_results().get(f"{name}.{tag}") or ()
        rates = [row.accuracies["imagenet"] for row in rows]
        return Expected(min(rates), max(rates), f"timm, of {rows[0].name}") if rates else None
    if source.startswith(_TORCHVISION) and source.endswith(_FIRST_WEIGHTS):
        name = source.removeprefix(_TORCHVISION).removesuffix(_FIRST_WEIGHTS)
        for model in line_models():
            if model.name == name:
                return Expected(model.clean, model.clean, f"the ImageNet testbed, of {name}")
    return None


def _is_validation(names: Iterable[str]) -> bool:
    """Whether these are ImageNet's validation images, as far as their names tell."""
    return all(_VALIDATION.search(name) for name in names)


def check_accuracy(records: Records, expected: Expected | None, *, why_not: str) -> Check:
    """Is the clean accuracy the known one? Both higher and lower ones are not."""
    right, count = int(records.correct.sum()), len(records)
    interval = wilson_interval(right, count, level=_LEVEL)
    said = f"{right / count:.1%} of {count:,} images are right"
    if expected is None:
        return Check("clean-accuracy", skipped=why_not)
    low, high = expected.low - _ROUNDING, expected.high + _ROUNDING
    known = f"{expected.low:.1%}" if expected.low == expected.high else f"{expected.low:.1%} to {expected.high:.1%}"
    said = f"{said}, {known} by {expected.said_by}"
    if interval.low <= high and interval.high >= low:
        return Check("clean-accuracy", said)
    lower = interval.high < low
    finding = Finding(
        "clean-accuracy",
        f"the clean accuracy is {'lower' if lower else 'higher'} than the known one",
        f"{right / count:.1%} of {count:,} images ({_LEVEL:.0%} interval {interval.low:.1%} to {interval.high:.1%}); "
        f"{known} by {expected.said_by}",
        "look at the other findings; else at weights, preprocessing and labels"
        if lower
        else "look whether these images are others than those of the known number, or were in the training set",
        "very likely",
        numbers={"right": float(right), "images": float(count), "low": expected.low, "high": expected.high},
    )
    return Check("clean-accuracy", said, (finding,))


def said_by_user(percent: float | None) -> Expected | None:
    """The accuracy in percent that the user expects."""
    if percent is None:
        return None
    if not 0 < percent <= 100:
        raise InputError(f"accuracy {percent:g}; expected percent above 0 and up to 100, such as 76.1")
    return Expected(percent / 100, percent / 100, "--accuracy, or accuracy=")


def expected_accuracy(
    said: Expected | None, card: ModelCard | None, names: Iterable[str], *, tag: str = ""
) -> tuple[Expected | None, str]:
    """The accuracy that is expected, or why none is: the user's, or the published one of the same images."""
    if said is not None:
        return said, ""
    published = published_accuracy(card, tag)
    if published is None and card is not None and card.claims:
        claim = card.claims[0]
        return None, (
            f"{claim.accuracy:.1%} on {claim.data} by {claim.said_by}; if these are its images, say so with "
            f"--accuracy {100 * claim.accuracy:g}"
        )
    if published is None:
        return None, "none is published for this model; say what it should be with --accuracy"
    if not _is_validation(names):
        return None, (
            f"{published.low:.1%} is published by {published.said_by} on ImageNet's validation images, which these are "
            "not by their names; say what it should be with --accuracy"
        )
    return published, ""
