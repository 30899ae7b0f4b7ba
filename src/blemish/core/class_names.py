"""What people call classes: the names that reports show and that zero-shot models are asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from blemish.core.errors import InputError, brief, refused
from blemish.core.reading import is_there, parse_json, read_text

IMAGENET = "imagenet"
"""The word for ImageNet's 1,000 classes in their usual order."""

_EXPECTED = "expected a text with a name per line in class order, a .json list of names, or imagenet"


@lru_cache(maxsize=1)
def imagenet_names() -> tuple[str, ...]:
    """The English names of ImageNet's 1,000 classes in their usual order; two names stand for two classes each.

    >>> imagenet_names()[0], imagenet_names()[657] == imagenet_names()[744]
    ('tench', True)
    """
    text = files("blemish.core").joinpath("imagenet_class_names.json").read_text(encoding="utf-8")
    return tuple(json.loads(text)["names"])


def read_class_names(names: str | os.PathLike[str] | Sequence[str]) -> tuple[str, ...]:
    """Class names in class order: from a file, from a sequence, or ImageNet's for ``imagenet``.

    A file holds a name per line, or is JSON: a list of names, or an object with a name for each index
    (``{"0": "tench", …}``; of a list for each index, such as ``["n01440764", "tench"]``, the last entry is the name).

    >>> read_class_names(["cat", "dog"])
    ('cat', 'dog')
    """
    if not isinstance(names, (str, os.PathLike)):
        return _checked("class names", list(names))
    path = os.fspath(names)
    if not is_there(path):
        if path == IMAGENET:
            return imagenet_names()
        raise InputError(f"{path}: no such file of class names; {_EXPECTED}")
    text = read_text(path)
    if text.lstrip()[:1] in ("{", "["):
        with refused(f"{path}: not readable as JSON", ValueError):
            content = parse_json(text)
        return _checked(path, _by_index(path, content) if isinstance(content, dict) else content)
    return _checked(path, text.rstrip().splitlines())


def _by_index(origin: str, content: Mapping[str, Any]) -> list[Any]:
    numbers = [str(number) for number in range(len(content))]
    if missing := [number for number in numbers if number not in content]:
        raise InputError(f"{origin}: no name for class {missing[0]} of {len(content)}; expected an entry for each")
    entries = [content[number] for number in numbers]
    return [entry[-1] if isinstance(entry, list) and entry else entry for entry in entries]


def _checked(origin: str, names: Sequence[Any]) -> tuple[str, ...]:
    if not names:
        raise InputError(f"{origin}: no names in it; {_EXPECTED}")
    for number, name in enumerate(names):
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"{origin}: class {number} is called {brief(name)}; expected a name for every class")
    return tuple(name.strip() for name in names)
