"""Do the labels mean what the model means: the order of the classes, labels of other images, classes without images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blemish.core.printable import first_few
from blemish.evaluation.chance import against_chance
from blemish.evaluation.records import Records
from blemish.studies.audit.findings import Check, Finding, Sure
from blemish.studies.audit.orders import (
    Mapping,
    agreement_by_chance,
    answers_by_halves,
    known_orders,
    learnt_order,
)
from blemish.studies.audit.significance import ALPHA, holm, paired

# An order that is better by less is no order of its own: two classes that a model confuses.
_LEAST_GAIN = 0.05
_SHOWN = 4
_ONE_ANSWER = 0.9
_SURE_OF_ITSELF = 0.5
# With fewer images of a label than this, nothing can be said of how their answers agree.
_FEWEST_OF_LABEL = 4
_DEVIATIONS = 4.0


class Ordered(NamedTuple):
    """The check of the order, and the mapping that mends it, if it has to be mended."""

    check: Check
    mapping: Mapping | None


@dataclass(frozen=True)
class Named:
    """What classes are called."""

    names: Sequence[str] | None

    def __call__(self, number: int) -> str:
        """The number of a class, with its name where it has one."""
        return f"{number}" if self.names is None or number >= len(self.names) else f"{number} ({self.names[number]})"


def check_order(records: Records, classes: int, names: Sequence[str] | None = None) -> Ordered:
    """Are the classes numbered in the model's order? What it answers to the images of each label tells."""
    labels, answers = records.labels.astype(np.int64), records.top5[:, 0].astype(np.int64)
    correct, count = records.correct, len(records)
    if len(np.unique(labels)) < 2:
        return Ordered(Check("class-order", skipped="the images are of one class only"), None)
    known = list(known_orders(classes).items())
    right = [mapping[labels] == answers for _, (mapping, _) in known]
    right.append(answers_by_halves(labels, answers, classes))
    significant = holm([paired(each, correct) for each in right])
    better = [i for i in range(len(right)) if significant[i] and _gain(right[i], correct) >= _LEAST_GAIN]
    said = f"the answers to {count} images, by label"
    if not better:
        return Ordered(Check("class-order", said), None)
    best = max(better, key=lambda index: (int(right[index].sum()), -index))
    p = paired(right[best], correct)
    numbers = {"right": int(correct.sum()), "right_otherwise": int(right[best].sum()), "images": count, "p": p}
    fits = f"{int(right[best].sum())} of {count} answers instead of {int(correct.sum())}"
    if best < len(known):
        title, (mapping, todo) = known[best]
        seen = f"with the labels renumbered accordingly, {fits} are right (p = {p:.1g})"
    else:
        mapping = learnt_order(labels, answers, classes)
        moved = [label for label in np.unique(labels).tolist() if mapping[label] != label]
        name = Named(names)
        pairs = first_few([f"{name(label)} → output {mapping[label]}" for label in moved], _SHOWN)
        title = "labels and outputs number the classes in different orders"
        seen = (
            f"for {len(moved)} of {len(np.unique(labels))} labels another output fits better ({pairs}); an order "
            f"learnt from half of the images makes {fits} right on the other half (p = {p:.1g})"
        )
        todo = "give the order of the model's classes (--mapping), or of the names (--class-names)"
    sure: Sure = "very likely" if p < ALPHA**2 else "likely"
    finding = Finding("class-order", title, seen, todo, sure, numbers=numbers)
    return Ordered(Check("class-order", said, (finding,)), mapping)


def _gain(right: NDArray[np.bool_], correct: NDArray[np.bool_]) -> float:
    return float(right.mean() - correct.mean())


def check_chance(records: Records, outputs: int | None) -> list[Check]:
    """Is the model better than chance; and if not, are the labels those of other images?"""
    chance = against_chance(records.labels, records.top5[:, 0], outputs=outputs)
    if not chance.near:
        return [Check("near-chance", str(chance)), Check("random-labels", str(chance))]
    labels, answers = records.labels.astype(np.int64), records.top5[:, 0].astype(np.int64)
    numbers = {"accuracy": chance.accuracy, "chance": chance.chance, "images": float(len(records))}
    values, counts = np.unique(answers, return_counts=True)
    share = float(counts.max() / len(answers))
    if share >= _ONE_ANSWER:
        seen = f"{chance}; {share:.0%} of the answers are class {int(values[counts.argmax()])}"
        todo = "look whether weights were loaded, and how the values are normalised (--mean, --std)"
        finding = Finding("near-chance", "the model always says the same", seen, todo, numbers=numbers)
        skipped = "the model always says the same"
        return [Check("near-chance", str(chance), (finding,)), Check("random-labels", skipped=skipped)]
    if len(labels) / len(np.unique(labels)) >= _FEWEST_OF_LABEL:
        p = agreement_by_chance(labels, answers)
        if p > ALPHA:
            return [Check("near-chance", str(chance)), _random(records, str(chance), p, numbers)]
    finding = Finding(
        "near-chance",
        "the model is no better than chance",
        f"{chance}, and none of what was tried helps",
        "look at the labels (--mapping), the weights, and which classes the model knows",
        numbers=numbers,
    )
    return [Check("near-chance", str(chance), (finding,)), Check("random-labels", skipped="too few images of a label")]


def _random(records: Records, chance: str, p: float, numbers: dict[str, float]) -> Check:
    confidence = float(records.confidence.mean())
    convinced = confidence >= _SURE_OF_ITSELF
    why = (
        f"{chance}; answers to images of one label agree no more than those to any images (p = {p:.2g}), and the "
        f"model's mean confidence is {confidence:.2f}"
    )
    if convinced:
        title, todo = "labels look random", "look whether labels and images are in the same order"
    else:
        title = "labels look random, or the model has learnt nothing of these images"
        todo = "look whether labels and images are in the same order, and whether weights were loaded"
    sure: Sure = "very likely" if convinced else "likely"
    return Check("random-labels", chance, (Finding("random-labels", title, why, todo, sure, numbers=numbers),))


def check_missing(labels: NDArray[np.int64], classes: int, names: Sequence[str] | None = None) -> Check:
    """Are there classes without any image, more than chance would leave out?

    Of k classes, n images drawn at random leave out k (1 − 1/k)^n on average.
    """
    missing = np.flatnonzero(np.bincount(labels, minlength=classes) == 0)
    said = f"{len(labels):,} labels of {classes:,} classes"
    by_chance = classes * (1 - 1 / classes) ** len(labels)
    if len(missing) <= by_chance + _DEVIATIONS * by_chance**0.5:
        return Check("classes-missing", said)
    name = Named(names)
    listed = first_few([name(int(label)) for label in missing], _SHOWN)
    numbers = {"missing": float(len(missing)), "classes": float(classes)}
    part = len(missing) / classes
    if part > 0.5:
        finding = Finding(
            "classes-missing",
            "the images are of a part of the classes",
            f"{classes - len(missing):,} of the model's {classes:,} classes have images",
            "say so beside the numbers: they do not compare with those of all classes",
            level="note",
            numbers=numbers,
        )
    else:
        finding = Finding(
            "classes-missing",
            "classes have no images",
            f"no image of {len(missing):,} of {classes:,} classes: {listed}",
            "look whether all folders, or files, are there",
            numbers=numbers,
        )
    return Check("classes-missing", said, (finding,))
