"""Orders in which classes are numbered by mistake, and the order that a model's own answers speak for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blemish.core.class_names import imagenet_names
from blemish.studies.audit.assignment import best_assignment

Mapping = NDArray[np.int64]
"""For each label, the output of the model that it should be."""

_FEWEST_TEXTS = 11
_SHIFTS = (1, -1)


def known_orders(classes: int) -> dict[str, tuple[Mapping, str]]:
    """Mistakes that have names: what was done, the mapping that mends it, and how to mend it."""
    own = np.arange(classes)
    orders: dict[str, tuple[Mapping, str]] = {
        f"labels are one too {'high' if shift > 0 else 'low'}": (
            (own - shift) % classes,
            "number the classes from 0"
            + ("" if shift > 0 else ", and drop the model's background class if it has one (--skip-classes 1)"),
        )
        for shift in _SHIFTS
    }
    orders["labels run backwards"] = own[::-1].copy(), "number the classes in the model's order (--mapping)"
    if classes >= _FEWEST_TEXTS:
        # Sorted as texts, number 10 comes before 2: place k holds class texts[k].
        texts = np.array(sorted(range(classes), key=str))
        orders["labels number the classes sorted as texts (0, 1, 10, 11, …)"] = (
            texts,
            "name the folders with leading zeros, or give the order (--mapping)",
        )
        orders["the model numbers the classes sorted as texts (0, 1, 10, 11, …)"] = (
            np.argsort(texts),
            "give the order that the model learnt, that of sorted texts (--mapping)",
        )
    names = imagenet_names()
    if classes == len(names):
        alphabet = np.array(sorted(own, key=lambda index: names[index].lower()))
        orders["labels number ImageNet's classes by their English names"] = (
            alphabet,
            "number them by WordNet id (--mapping imagenet)",
        )
    return orders


def two_halves(labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Half of the images of each class, by turns."""
    half = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels).tolist():
        members = np.flatnonzero(labels == label)
        half[members[::2]] = True
    return half


def learnt_order(labels: NDArray[np.int64], answers: NDArray[np.int64], classes: int) -> Mapping:
    """The one-to-one mapping of labels to outputs under which most answers are right; the own output where equal."""
    present = np.unique(labels)
    counts = np.zeros((len(present), classes))
    np.add.at(counts, (np.searchsorted(present, labels), answers), 1)
    counts[np.arange(len(present)), present] += 0.5
    mapping = np.arange(classes)
    mapping[present] = best_assignment(counts)
    return mapping


def answers_by_halves(labels: NDArray[np.int64], answers: NDArray[np.int64], classes: int) -> NDArray[np.bool_]:
    """Which answers are right under an order that was learnt from the other half of the images."""
    half = two_halves(labels)
    right = np.zeros(len(labels), dtype=bool)
    for part in (half, ~half):
        if part.any() and not part.all():
            right[part] = learnt_order(labels[~part], answers[~part], classes)[labels[part]] == answers[part]
    return right


def agreement_by_chance(
    labels: NDArray[np.int64], answers: NDArray[np.int64], *, draws: int = 499, seed: int = 0
) -> float:
    """How likely answers to images of one label agree that much if labels were dealt out at random."""
    _, at = np.unique(labels, return_inverse=True)
    _, given = np.unique(answers, return_inverse=True)
    width = int(given.max()) + 1

    def agreement(order: NDArray[np.int64]) -> int:
        counts = np.bincount(at * width + given[order])
        return int((counts * (counts - 1)).sum())

    seen, rng = agreement(np.arange(len(at))), np.random.default_rng(seed)
    as_much = sum(agreement(rng.permutation(len(at))) >= seen for _ in range(draws))
    return (1 + as_much) / (1 + draws)
