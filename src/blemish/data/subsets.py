"""Some of the classes of labelled images: every tenth, as in ImageNet-100, or those in a list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from blemish.core.errors import InputError
from blemish.core.reading import is_file, read_text
from blemish.corruptions.by_name import hint
from blemish.data.source import Source

_EVERY = re.compile(r"every:(?P<step>[0-9]{1,6})")


def chosen_classes(source: Source, text: str) -> tuple[str, ...]:
    """The classes of a source that a text names, in class order.

    ``every:10`` is every tenth, beginning with the first: of ImageNet's folders, which are in the order of WordNet ids,
    ImageNet-100. Else names separated by commas, or a file with a name per line. Classes without names are numbers.
    """
    known = _names(source)
    if every := _EVERY.fullmatch(text.strip()):
        step = int(every["step"])
        if step < 1:
            raise InputError(f"classes {text!r}; expected every:N with N of 1 or more")
        return known[::step]
    lines = read_text(text).splitlines() if is_file(text) else text.split(",")
    wanted = [line.strip() for line in lines if line.strip()]
    if not wanted:
        raise InputError(f"classes {text!r}: none named; expected every:N, names, or a file with a name per line")
    for name in wanted:
        if name not in known:
            raise InputError(f"{source.name}: no class {name!r}; {hint(name, list(known))}")
    return tuple(name for name in known if name in set(wanted))


def only_classes(source: Source, names: Sequence[str], *, renumber: bool) -> Source:
    """The images of these classes. ``renumber`` counts them from 0; otherwise labels mean what they did."""
    if source.groups is not None:
        raise InputError(f"{source.name}: its labels stand for several classes of a model; expected plain classes")
    known = _names(source)
    if missing := [name for name in names if name not in known]:
        raise InputError(f"{source.name}: no class {missing[0]!r}; expected the classes that were chosen")
    number_of = np.full(len(known), -1, dtype=np.int64)
    number_of[[known.index(name) for name in names]] = np.arange(len(names))
    labels = number_of[source.labels]
    rows = np.flatnonzero(labels >= 0)
    if len(rows) == 0:
        raise InputError(f"{source.name}: no images of the {len(names)} chosen classes")
    part = replace(source.take(rows), name=f"{source.name} ({len(names)} of {len(known)} classes)")
    if not renumber:
        return part
    called = source.class_names
    shown = None if called is None else tuple(called[known.index(name)] for name in names)
    return replace(part, labels=labels[rows], classes=tuple(names), class_names=shown)


def _names(source: Source) -> tuple[str, ...]:
    return source.classes or tuple(str(label) for label in range(int(source.labels.max()) + 1))
