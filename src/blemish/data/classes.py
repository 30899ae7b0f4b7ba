"""Class facts: ImageNet's class order, and which of its classes the natural sets cover."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from blemish.core.class_names import imagenet_names
from blemish.core.errors import InputError, UnknownNameError

NATURAL_SETS = ("imagenet-a", "imagenet-r", "imagenet-v2", "imagenet-sketch", "objectnet")


@lru_cache(maxsize=1)
def _facts() -> dict[str, Any]:
    text = files("blemish.data").joinpath("imagenet_classes.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def imagenet_wnids() -> tuple[str, ...]:
    """The WordNet ids of ImageNet's 1,000 classes in their usual order, which is the sorted one.

    >>> imagenet_wnids()[0], len(imagenet_wnids())
    ('n01440764', 1000)
    """
    return tuple(_facts()["imagenet_wnids"])


def class_titles(classes: Sequence[str]) -> tuple[str, ...]:
    """Classes as people read them: WordNet ids of ImageNet's classes by their English names, all others as they are.

    Where two classes have the same name, their numbers tell them apart.

    >>> class_titles(["n01440764", "zebra finch"])
    ('tench', 'zebra finch')
    """
    known = dict(zip(imagenet_wnids(), _told_apart(imagenet_names()), strict=True))
    return _told_apart([known.get(name, name) for name in classes])


def _told_apart(names: Sequence[str]) -> tuple[str, ...]:
    times = Counter(names)
    return tuple(f"{name} ({number})" if times[name] > 1 else name for number, name in enumerate(names))


def imagenet_indices(folders: Iterable[str]) -> dict[str, int]:
    """The indices of class folders that are called by ImageNet's English names or numbers.

    Case and underscores do not count. Folders with other names are left out, and names of two classes are refused.

    >>> imagenet_indices(["Great_White_Shark", "n01440764", "217"])
    {'Great_White_Shark': 2, '217': 217}
    """
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(imagenet_names()):
        numbers.setdefault(name.casefold(), []).append(number)
        numbers[str(number)] = [number]
    numbers_of = {folder: numbers.get(folder.replace("_", " ").casefold(), []) for folder in folders}
    if twice := [folder for folder, members in numbers_of.items() if len(members) > 1]:
        both = " and ".join(map(str, numbers_of[twice[0]]))
        raise InputError(f"class folder {twice[0]!r}: the name of ImageNet's classes {both}; expected WordNet ids")
    return {folder: members[0] for folder, members in numbers_of.items() if members}


def are_wordnet_ids(names: Sequence[str]) -> bool:
    """Whether there are names, and all look like WordNet ids, whether ImageNet has them or not."""
    return bool(names) and all(re.fullmatch(r"n\d{8}", name) for name in names)


def objectnet_folders() -> dict[str, tuple[int, ...]]:
    """ObjectNet's 113 folders that ImageNet has classes for, each with the indices that count as correct."""
    return {name: tuple(indices) for name, indices in _facts()["objectnet"].items()}


def natural_groups(name: str) -> tuple[tuple[int, ...], ...] | None:
    """For each class of a natural set, the ImageNet indices that count as it; None for all 1,000 in order.

    >>> natural_groups("objectnet")[0]
    (409, 530)
    """
    check_name(name)
    if name == "objectnet":
        return tuple(objectnet_folders().values())
    if name in ("imagenet-a", "imagenet-r"):
        return tuple((index,) for index in _facts()[name.replace("-", "_")])
    return None


def natural_classes(name: str) -> tuple[str, ...]:
    """The names of a natural set's classes: WordNet ids, or ObjectNet's folders."""
    groups = natural_groups(name)
    if name == "objectnet":
        return tuple(objectnet_folders())
    wnids = imagenet_wnids()
    return wnids if groups is None else tuple(wnids[index] for (index,) in groups)


def check_name(name: str) -> None:
    """Refuse a set that is not known."""
    if name not in NATURAL_SETS:
        raise UnknownNameError(f"no natural set is called {name!r}; known are {', '.join(NATURAL_SETS)}")
