"""Superclasses: a few classes that each stand for several of ImageNet's, as benchmarks with human observers ask for.

Images of the members' classes are labelled with their superclass, and a model is asked for the superclass: its
probabilities of the members are pooled while it is measured (`blemish.evaluation.predict`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError, UnknownNameError, notify
from blemish.data.classes import imagenet_wnids
from blemish.data.labels import fit_labels
from blemish.data.source import Source


@dataclass(frozen=True)
class Superclasses:
    """Classes by name, each with the ImageNet indices that count as it."""

    name: str
    classes: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]


@lru_cache(maxsize=1)
def _known() -> dict[str, Superclasses]:
    text = files("blemish.data").joinpath("superclasses.json").read_text(encoding="utf-8")
    content = {name: entry for name, entry in json.loads(text).items() if name != "about"}
    return {
        name: Superclasses(name, tuple(entry), tuple(tuple(indices) for indices in entry.values()))
        for name, entry in content.items()
    }


def superclass_names() -> tuple[str, ...]:
    """The superclasses that come with the library.

    >>> superclass_names()
    ('laion-c', 'sixteen')
    """
    return tuple(_known())


def superclasses_named(name: str) -> Superclasses:
    """Superclasses by name: ``laion-c`` (Li et al. 2025), ``sixteen`` (Geirhos et al. 2018, 2021).

    >>> [(len(s.classes), sum(map(len, s.members))) for s in map(superclasses_named, superclass_names())]
    [(16, 285), (16, 207)]
    """
    if name not in _known():
        raise UnknownNameError(f"no superclasses are called {name!r}; known are {', '.join(_known())}")
    return _known()[name]


def in_superclasses(source: Source, superclasses: Superclasses, outputs: int, *, model: str) -> Source:
    """The images that belong to superclasses, labelled with them; ``outputs`` is how many classes the model has.

    Class folders are either the superclasses by name, or become ImageNet's classes as `fit_labels` says; images of
    other classes are left out, which is told by a notice.
    """
    classes = len(imagenet_wnids())
    if outputs != classes:
        more = ". Where the first output is the background, drop it (--skip-classes 1)" * (outputs == classes + 1)
        raise InputError(
            f"model {model} has {outputs:,} outputs, but the superclasses {superclasses.name} are made of ImageNet's "
            f"{classes:,} classes; expected a model with those{more}"
        )
    if source.groups is not None:
        raise InputError(f"{source.name}: its labels stand for several classes already; expected plain classes")
    label_of = _labels_by_name(source, superclasses)
    if label_of is None:
        source = fit_labels(source, outputs, model=model)
        label_of = np.full(classes, -1, dtype=np.int64)
        for label, members in enumerate(superclasses.members):
            label_of[list(members)] = label
    labels = label_of[source.labels]
    rows = np.flatnonzero(labels >= 0)
    if not len(rows):
        raise InputError(f"{source.name}: no images of the {len(superclasses.classes)} classes of {superclasses.name}")
    if len(rows) < len(source):
        notify(
            f"{source.name}: {len(rows):,} of {len(source):,} images are of the {len(superclasses.classes)} classes of "
            f"{superclasses.name}; the others are left out"
        )
    part = source if len(rows) == len(source) else source.take(rows)
    return replace(
        part,
        labels=labels[rows],
        classes=superclasses.classes,
        groups=superclasses.members,
        class_names=None,
        labelling="given",
    )


def _labels_by_name(source: Source, superclasses: Superclasses) -> NDArray[np.int64] | None:
    """The superclass of each label where the source's classes are superclasses by name; None where they are others."""
    named = source.classes or ()
    if not named or not {*named} <= {*superclasses.classes}:
        return None
    return np.array([superclasses.classes.index(name) for name in named], dtype=np.int64)
