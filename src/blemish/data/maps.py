"""Maps of classes beside pictures: the number of a class for every pixel, as Cityscapes, VOC and ADE20K have them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from blemish.core.errors import InputError, refused
from blemish.core.printable import first_few
from blemish.data.folders import picture_source
from blemish.data.pictures import list_pictures
from blemish.data.source import Source

VOID = 255
"""Pixels of this class are left out."""

_SHOWN = 3
# What Cityscapes adds to the names of pictures and of their maps.
_ADDED = re.compile(r"_(leftImg8bit|gtFine_labelTrainIds|gtFine_labelIds)$")
_OTHER_KINDS = re.compile(r"_gtFine_(color|instanceIds|labelIds|polygons)$")


@dataclass(frozen=True)
class MapTruth:
    """The map of every image by name, read when it is asked for; ``classes`` are the numbers that occur."""

    read: Callable[[str], NDArray[np.uint8]]
    names: frozenset[str]
    classes: tuple[int, ...]
    digest: str


def truth_of(names: Sequence[str], read: Callable[[str], NDArray[np.uint8]]) -> MapTruth:
    """The truth of some images; every map is read once, to know the classes and to tell this truth from others."""
    digest, seen = hashlib.blake2b(digest_size=16), np.zeros(256, dtype=np.bool_)
    for name in sorted(names):
        values = read(name)
        seen[np.unique(values)] = True
        digest.update(name.encode("utf-8", "surrogateescape") + b"\0" + repr(values.shape).encode() + values.tobytes())
    seen[VOID] = False
    if not seen.any():
        raise InputError(f"maps of {len(names)} images hold no class but {VOID}; expected the numbers of classes")
    return MapTruth(read, frozenset(names), tuple(np.flatnonzero(seen).tolist()), digest.hexdigest())


def map_images(pictures: str | os.PathLike[str], maps: str | os.PathLike[str]) -> tuple[Source, MapTruth]:
    """The pictures that have a map of the same name in another folder, such as leftImg8bit/val and gtFine/val.

    Of Cityscapes' several files, those of training numbers (``_labelTrainIds``) are taken.
    """
    root, other = Path(pictures), Path(maps)
    files = _by_stem(list_pictures(root), root)
    wanted = [
        name for name in list_pictures(other) if not _OTHER_KINDS.search(str(PurePosixPath(name).with_suffix("")))
    ]
    paths = _by_stem(wanted, other)
    if missing := [name for stem, name in paths.items() if stem not in files]:
        raise InputError(f"{root}: no picture for {len(missing)} of {len(paths)} maps: {first_few(missing, _SHOWN)}")
    map_of = {files[stem]: other / name for stem, name in paths.items()}
    names = sorted(map_of)
    if not names:
        raise InputError(
            f"{other}: no maps of classes in it; expected a .png for each picture, of Cityscapes those of training "
            "numbers, _gtFine_labelTrainIds (its own scripts make them)"
        )
    return picture_source(root, names, [0] * len(names)), truth_of(names, _Reader(map_of))


@dataclass(frozen=True)
class _Reader:
    paths: Mapping[str, Path]

    def __call__(self, name: str) -> NDArray[np.uint8]:
        path = self.paths[name]
        with refused(f"{path}: not a readable map", OSError, ValueError, SyntaxError), Image.open(path) as picture:
            if picture.mode not in ("L", "P", "1"):
                raise InputError(f"{path}: a picture of mode {picture.mode}; expected the numbers of classes (L or P)")
            return np.array(picture, dtype=np.uint8)


def _by_stem(names: Sequence[str], root: Path) -> dict[str, str]:
    stems: dict[str, str] = {}
    for name in names:
        stem = _ADDED.sub("", str(PurePosixPath(name).with_suffix("")))
        if stem in stems:
            raise InputError(f"{root}: {stems[stem]} and {name} have the same name but for what is behind it")
        stems[stem] = name
    return stems
