"""Which output of a model each label means: the rule for class folders that nobody has mapped, and what is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError, notify
from blemish.core.printable import first_few
from blemish.data.classes import are_wordnet_ids, imagenet_wnids
from blemish.data.source import Source

WAYS = (
    "give a mapping (--mapping, or open_source(…, mapping=…)): a .json of {folder: index}, a text with a folder per "
    "line in class order, or imagenet"
)


def fit_labels(source: Source, outputs: int, *, model: str) -> Source:
    """The source with labels that are the model's own class numbers; one that cannot be is refused.

    Class folders that nobody mapped follow `class_indices`. So do classes with WordNet ids as names that a dataset or
    an ``.npz`` file numbers among themselves. All other labels were given, and have to be below the number of outputs.
    """
    named, wnids = source.classes or (), imagenet_wnids()
    of_imagenet = outputs == len(wnids) and are_wordnet_ids(named)
    if source.in_order or (source.labelling == "given" and of_imagenet and len(named) < len(wnids)):
        what = "class" if source.labelling == "names" else "class folder"
        indices = class_indices(named, outputs, source=source.name, model=model, what=what)
        _notify_of_numbers(source)
        if not of_imagenet:
            _check_names(source, outputs, model)
            return source
        labels = np.array([indices[name] for name in named], dtype=np.int64)[source.labels]
        called = _called(source, [indices[name] for name in named], wnids)
        return replace(source, labels=labels, classes=wnids, class_names=called, labelling="imagenet")
    _check_names(source, outputs, model)
    if source.groups is None:
        check_below(source.labels, source.names, outputs, source=source.name, model=f"model {model}")
    elif (needed := max(map(max, source.groups))) >= outputs:
        raise InputError(f"{source.name}: needs class {needed} of a model, but {model} has {_outputs(outputs)}")
    return source


def _notify_of_numbers(source: Source) -> None:
    """Say so where classes are numbers in the order of texts, as torchvision sorts folders: 10 before 2."""
    names = source.classes or ()
    if not all(name.isascii() and name.isdecimal() for name in names):
        return
    numbers = [int(name) for name in names]
    moved = next((index for index in range(1, len(numbers)) if numbers[index] < numbers[index - 1]), None)
    if moved is not None:
        notify(
            f"{source.name}: class {names[moved]} comes after {names[moved - 1]}, as texts are sorted, and has the "
            f"label {moved}; where the model counts classes as numbers, open the folder itself"
        )


def _called(source: Source, indices: Sequence[int], wnids: tuple[str, ...]) -> tuple[str, ...] | None:
    """The class names of folders that become some of ImageNet's classes; names may be of these, or of all."""
    called = source.class_names
    if called is None or len(called) == len(wnids):
        return called
    if len(called) != len(indices):
        raise InputError(
            f"{source.name}: {len(called)} class names for {_counted(len(indices), 'class')} of ImageNet's "
            f"{len(wnids):,}; expected as many as the one or the other"
        )
    names = list(wnids)
    for index, name in zip(indices, called, strict=True):
        names[index] = name
    return tuple(names)


def _check_names(source: Source, outputs: int, model: str) -> None:
    """Refuse class names of which there are not as many as classes: they would be those of other classes."""
    expected = outputs if source.groups is None else len(source.groups)
    if source.class_names is not None and len(source.class_names) != expected:
        raise InputError(
            f"{source.name}: {len(source.class_names)} class names, but model {model} has {_outputs(outputs)}; "
            f"expected {expected} names, one for each in order"
        )


def class_indices(
    folders: Sequence[str], outputs: int, *, source: str, model: str, what: str = "class folder"
) -> dict[str, int]:
    """The class index of each class folder, or what else classes are, in class order.

    WordNet ids and a model with 1,000 outputs: ImageNet's indices. Else as many outputs as folders: numbered in order.
    Everything else is refused, because it would be a guess.

    >>> class_indices(["cat", "dog"], 2, source="pets", model="net")
    {'cat': 0, 'dog': 1}
    """
    wnids = imagenet_wnids()
    numbered = {name: number for number, name in enumerate(folders)}
    if outputs == len(wnids) and are_wordnet_ids(folders):
        known = {wnid: index for index, wnid in enumerate(wnids)}
        if strange := [name for name in folders if name not in known]:
            raise InputError(
                f"{source}: {len(strange)} of {len(folders)} {_several(what)} are WordNet ids that are not among "
                f"ImageNet's {len(wnids):,} classes ({first_few(strange, 3)}), and model {model} has {outputs:,} "
                f"outputs; {WAYS}"
            )
        indices = {name: known[name] for name in folders}
        if indices != numbered:
            notify(
                f"{source}: {_counted(len(folders), what)} named by WordNet ids, and model {model} has {outputs:,} "
                "outputs: labels are ImageNet's class indices (mapping imagenet)"
            )
        return indices
    if outputs == len(folders):
        return numbered
    raise InputError(
        f"{source}: {_counted(len(folders), what)} ({first_few(folders, 3)}), but model {model} has "
        f"{_outputs(outputs)}, so that nobody can tell which is which; expected as many outputs as "
        f"{_several(what.split()[-1])}; else {WAYS}{_hint(outputs)}"
    )


def labels_entry(source: Source) -> str:
    """How labels were numbered, in a few words: what the header of records says of it.

    Two sources with the same folders have equal entries only if the same labels mean the same classes.
    """
    if source.labelling == "given":
        return "as given"
    if source.labelling == "imagenet" or (source.labelling == "mapping" and source.classes == imagenet_wnids()):
        return "imagenet"
    if source.labelling == "names":
        return "class names in order"
    if source.labelling == "order" or (source.classes and list(source.classes) == sorted(source.classes)):
        return "class folders in order"
    names = "\n".join(source.classes or ()).encode("utf-8", "surrogateescape")
    return f"mapping {hashlib.blake2b(names, digest_size=6).hexdigest()}"


def check_below(
    labels: NDArray[np.int64], names: Sequence[str] | NDArray[np.int64], outputs: int, *, source: str, model: str
) -> None:
    """Refuse a label that no output of a model stands for, and name its image, or tell its id.

    >>> check_below(np.array([0, 3]), ["a.png", "b.png"], 4, source="pictures", model="model net")
    """
    row = int(labels.argmax())
    label = int(labels[row])
    if label >= outputs:
        raise InputError(
            f"{source}: image {names[row]} has the label {label}, but {model} has {_outputs(outputs)}; expected labels "
            f"below {outputs}{_hint(outputs)}"
        )


def _hint(outputs: int) -> str:
    if outputs == 1:
        return ". A model with a single output has no score for each class: give it one for each, two for yes and no"
    if outputs == len(imagenet_wnids()) + 1:
        return ". Where the first output is the background, drop it (--skip-classes 1)"
    return ""


def _outputs(count: int) -> str:
    return "1 output" if count == 1 else f"{count:,} outputs"


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count:,} {_several(what)}"


def _several(what: str) -> str:
    return f"{what}es" if what.endswith("s") else f"{what}s"
