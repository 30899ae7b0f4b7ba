"""Natural sets: ImageNet-A, -R, V2, Sketch and ObjectNet, and the clean images of the same classes.

Papers: Hendrycks et al., CVPR 2021 (A) and ICCV 2021 (R); Recht et al., ICML 2019 (V2); Wang et al., NeurIPS 2019
(Sketch); Barbu et al., NeurIPS 2019 (ObjectNet).
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from blemish.core.errors import InputError
from blemish.core.reading import is_folder
from blemish.data.classes import (
    are_wordnet_ids,
    check_name,
    imagenet_wnids,
    natural_classes,
    natural_groups,
    objectnet_folders,
)
from blemish.data.folders import class_folders, picture_source
from blemish.data.pictures import list_pictures
from blemish.data.source import Source

_OBJECTNET_BORDER = 2
"""ObjectNet's pictures have a red frame of this width, to be cut off before they are classified."""


def natural_source(name: str, path: str | os.PathLike[str]) -> Source:
    """A natural set as its authors publish it, in folders named by WordNet id, class index or ObjectNet's object.

    Labels number the classes of the set; ``groups`` lists the model's classes that count as each, where the set does
    not cover all 1,000 in order. ObjectNet's folders without an ImageNet class are left out, which ``note`` tells.
    """
    check_name(name)
    root = Path(path)
    if name == "objectnet" and is_folder(root / "images"):
        root = root / "images"
    folders = class_folders(root)
    labels = _labels_by_folder(name, root, folders)
    names = [picture for picture in list_pictures(root) if picture.partition("/")[0] in labels]
    if not names:
        raise InputError(f"{root}: no pictures of {name}; expected folders such as {natural_classes(name)[0]}")
    source = picture_source(
        root,
        names,
        [labels[picture.partition("/")[0]] for picture in names],
        classes=natural_classes(name),
        groups=natural_groups(name),
        border=_OBJECTNET_BORDER if name == "objectnet" else 0,
        note=_note(name, len(folders), len(labels)),
    )
    return replace(source, name=name, reopen=partial(natural_source, name, path))


def _note(name: str, folders: int, known: int) -> str | None:
    classes = len(natural_classes(name))
    parts = [f"{folders - known} folders without an ImageNet class left out"] * (folders > known)
    parts += [f"{classes - known} of {classes} classes missing"] * (classes > known)
    return "; ".join(parts) or None


def _labels_by_folder(name: str, root: Path, folders: list[str]) -> dict[str, int]:
    if name == "objectnet":
        return _objectnet_labels(root, folders)
    known = {wnid: label for label, wnid in enumerate(natural_classes(name))}
    if name == "imagenet-v2" and all(folder.isascii() and folder.isdecimal() for folder in folders):
        known = {str(label): label for label in known.values()}
    for folder in folders:
        if folder not in known:
            example = ", ".join([*known][:3])
            raise InputError(f"{root}: folder {folder!r} is no class of {name}; expected {example} …")
    return {folder: known[folder] for folder in folders}


def _objectnet_labels(root: Path, folders: list[str]) -> dict[str, int]:
    known = {_plain(folder): label for label, folder in enumerate(objectnet_folders())}
    owners: dict[int, str] = {}
    for folder in folders:
        label = known.get(_plain(folder))
        if label is None:
            continue
        if label in owners:
            raise InputError(f"{root}: {owners[label]!r} and {folder!r} mean the same class; expected one of them")
        owners[label] = folder
    if not owners:
        raise InputError(f"{root}: none of ObjectNet's folders among {len(folders)}; expected alarm_clock, backpack …")
    return {folder: label for label, folder in owners.items()}


def _plain(folder: str) -> str:
    """A folder's name without capitals, spaces and signs: ``Weight (exercise)`` is ``weight_exercise``.

    >>> _plain("T-shirt") == _plain("t_shirt")
    True
    """
    return re.sub(r"[^a-z0-9]", "", folder.lower())


def same_classes(name: str, clean_source: Source) -> Source:
    """The clean images of the classes that a natural set covers, labelled with the classes of that set.

    The labels of ``clean_source`` have to be ImageNet's 1,000 class indices.
    """
    _check_imagenet(clean_source)
    groups = natural_groups(name)
    if groups is None:
        return clean_source
    label_of = np.full(len(imagenet_wnids()), -1, dtype=np.int64)
    for label, members in enumerate(groups):
        label_of[list(members)] = label
    labels = label_of[clean_source.labels]
    rows = np.flatnonzero(labels >= 0)
    if len(rows) == 0:
        raise InputError(f"{clean_source.name}: no images of the {len(groups)} classes of {name}")
    return replace(
        clean_source.take(rows),
        name=f"{clean_source.name}, classes of {name}",
        labels=labels[rows],
        classes=natural_classes(name),
        groups=groups,
    )


def _check_imagenet(source: Source) -> None:
    wnids = imagenet_wnids()
    highest = int(source.labels.max())
    if source.groups is not None or highest >= len(wnids):
        labelled = "classes of their own" if source.groups is not None else f"a label of {highest}"
        raise InputError(
            f"{source.name}: images with {labelled}; expected ImageNet's class indices 0 … {len(wnids) - 1}"
        )
    named = source.classes
    if named is not None and len(named) != len(wnids):
        raise InputError(
            f"{source.name}: {len(named)} classes; expected ImageNet's {len(wnids)}. "
            "Folders of WordNet ids that are only some of them need the mapping imagenet"
        )
    if named is not None and named != wnids and are_wordnet_ids(named):
        raise InputError(f"{source.name}: its WordNet ids are not ImageNet's 1,000 in their usual order")
