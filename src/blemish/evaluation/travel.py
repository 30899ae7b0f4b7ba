"""Images on their way to workers: as they are, as a file that is mapped, or as what has to be opened again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.core.files import staging_path
from blemish.core.types import Square
from blemish.data.images import Images
from blemish.data.natural import same_classes
from blemish.data.source import Source
from blemish.data.stored import StoredSet
from blemish.evaluation.executors.base import Reach
from blemish.evaluation.executors.tensors import mapped_file
from blemish.evaluation.plan import ImageSet, Mapped, Reopened

_NATURAL = "natural:"


def set_name(condition: Condition) -> str:
    """The natural set that a condition is about.

    >>> from blemish.benchmarks.condition import parse_condition
    >>> set_name(parse_condition("natural:imagenet-r"))
    'imagenet-r'
    """
    return str(condition.other).partition(":")[2]


def other_images(condition: Condition, source: Source, images: Images, natural: Mapping[str, Images]) -> Images:
    """The images of a natural set, or the clean ones of its classes, labelled as it labels them; none decoded again."""
    name = set_name(condition)
    if str(condition.other).startswith(_NATURAL):
        return natural[name]
    part = same_classes(name, source)
    row_of = {image: row for row, image in enumerate(images.names)}
    taken = images.take([row_of[image] for image in part.names])
    return replace(taken, labels=part.labels, groups=part.groups, classes=part.classes)


def image_sets(
    sets: Mapping[str, Images],
    reach: Reach,
    source: Source,
    natural: Mapping[str, Source],
    benchmark: Benchmark,
    *,
    folder: Path,
    stack: contextlib.ExitStack,
) -> dict[str, ImageSet]:
    """Images as workers take them, by what they share with this process; ``stack`` removes the files at the end."""
    if reach == "process":
        return {name: ImageSet(images) for name, images in sets.items()}
    if reach == "machine":
        return mapped_sets(sets, folder, stack)
    protocol = benchmark.protocol
    reopened = {}
    for name, images in sets.items():
        crop = None if benchmark.has_sequences and not name.startswith(_NATURAL) else protocol.view
        origin = source
        if name.startswith(_NATURAL):
            origin = natural[name.removeprefix(_NATURAL)]
        elif name:
            origin = same_classes(name.partition(":")[2], source)
        reopened[name] = reopened_set(images, origin, protocol.resize, crop)
    return reopened


def mapped_sets(sets: Mapping[str, Images], folder: Path, stack: contextlib.ExitStack) -> dict[str, ImageSet]:
    """For workers on this machine: pixels in files that they map; ``stack`` removes those that are written for it."""
    files: dict[int, Mapped] = {}
    for images in sets.values():
        if id(images.pixels) not in files:
            files[id(images.pixels)] = Mapped(_file_of(images, folder, stack), images.pixels.size)
    return {name: ImageSet(_without_pixels(images), files[id(images.pixels)]) for name, images in sets.items()}


def reopened_set(images: Images, source: Source, resize: int | None, crop: int | Square | None) -> ImageSet:
    """For workers on other machines, which open the source themselves."""
    if source.reopen is None:
        raise InputError(
            f"{source.name}: these images cannot be opened on other machines; "
            "expected a path, or a source with a way to reopen it"
        )
    return ImageSet(_without_pixels(images), Reopened(source.reopen, resize, crop))


def _without_pixels(images: Images) -> Images:
    return replace(images, pixels=np.empty(0, dtype=np.uint8))


def _file_of(images: Images, folder: Path, stack: contextlib.ExitStack) -> Path:
    """The file that the pixels lie in; where they do not, one that is written now."""
    file = images.pixels.filename if isinstance(images.pixels, np.memmap) else None
    if isinstance(file, (str, Path)) and Path(file).is_file():
        return Path(file)
    path = staging_path(folder, "pixels")
    path.parent.mkdir(parents=True, exist_ok=True)
    return stack.enter_context(mapped_file(images.pixels, path))


def reopening(stored: StoredSet | None) -> Callable[[], StoredSet] | None:
    """How workers open a stored set."""
    if stored is not None and stored.reopen is None:
        raise InputError(f"{stored.name}: a stored set that workers cannot open; expected one of open_stored")
    return None if stored is None else stored.reopen
