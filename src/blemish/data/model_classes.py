"""The names that a model has for its outputs, held against those of the data's classes: do the labels mean the same?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from blemish.core.class_names import imagenet_names
from blemish.core.errors import InputError, notify
from blemish.core.printable import first_few
from blemish.data.classes import are_wordnet_ids, imagenet_wnids
from blemish.data.labels import WAYS
from blemish.data.source import Source

_SHOWN = 3

_NAMES = "give class names in the order of the classes (--class-names, or open_source(…, class_names=…))"


def fit_class_names(source: Source, names: Sequence[str], *, model: str) -> Source:
    """The source with labels that are a model's outputs, as far as names tell; ``names`` are those of the outputs.

    Class folders that are all called like outputs are labelled by them, whatever their order and number. Other labels
    stay; if most of the classes that both know by name have other numbers in the model, they are refused.
    """
    if source.groups is not None:
        return source
    places = _places(names)
    if source.in_order and source.classes is not None and not are_wordnet_ids(source.classes):
        positions = [places.get(_plain(name)) for name in source.classes]
        indices = [index for index in positions if index is not None]
        if len(indices) == len(positions) == len({*indices}):
            fitted = _renumbered(source, indices, names, model)
            _check_same(fitted, fitted.class_names or (), places, model, _NAMES)
            return fitted
    called = _known_names(source)
    if called is None:
        return replace(source, class_names=tuple(names)) if len(names) > int(source.labels.max()) else source
    _check_same(source, called, places, model, WAYS)
    return source


def _check_same(source: Source, called: Sequence[str], places: dict[str, int], model: str, ways: str) -> None:
    """Refuse names of labels of which most are those of other outputs."""
    there = [(number, places[_plain(name)]) for number, name in enumerate(called) if _plain(name) in places]
    moved = [(number, own) for number, own in there if number != own]
    if 2 * len(moved) > len(there):
        examples = [f"{called[number]!r} is {number} here and {own} there" for number, own in moved]
        raise InputError(
            f"{source.name}: labels that are not the outputs of model {model}: of {len(there)} classes that both know "
            f"by name, {len(moved)} have other numbers ({first_few(examples, _SHOWN)}); {ways}"
        )


def _renumbered(source: Source, indices: Sequence[int], names: Sequence[str], model: str) -> Source:
    """The labels of class folders by name."""
    if list(indices) == list(range(len(names))):
        return source
    what = "class folders" if source.labelling == "order" else "classes"
    notify(f"{source.name}: its {len(indices)} {what} have names of outputs of model {model}, and their numbers")
    labels = np.array(indices, dtype=np.int64)[source.labels]
    called, given = list(names), list(source.class_names or names)
    if len(given) == len(indices) and given != called:  # names of the folders, in their order
        for index, name in zip(indices, given, strict=True):
            called[index] = name
    else:  # of the outputs, as a zero-shot model was asked for them; another number is refused with the labels
        called = given
    return replace(source, labels=labels, classes=tuple(names), class_names=tuple(called), labelling="mapping")


def _known_names(source: Source) -> tuple[str, ...] | None:
    """What the data's classes are called, in the order of the labels; of ImageNet's WordNet ids, the English names."""
    classes = source.class_names or source.classes
    if classes is None or not are_wordnet_ids(classes):
        return classes
    english = dict(zip(imagenet_wnids(), imagenet_names(), strict=True))
    return tuple(english.get(wnid, wnid) for wnid in classes)


def _places(names: Sequence[str]) -> dict[str, int]:
    """The output that a name stands for; of outputs with several names (``tench, Tinca tinca``) each is one.

    >>> _places(["tench, Tinca tinca", "crane", "crane"])
    {'tench, tinca tinca': 0, 'tench': 0, 'tinca tinca': 0}
    """
    places: dict[str, set[int]] = {}
    for number, name in enumerate(names):
        for part in (name, *name.split(",")):
            places.setdefault(_plain(part), set()).add(number)
    return {name: min(numbers) for name, numbers in places.items() if len(numbers) == 1}


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()
