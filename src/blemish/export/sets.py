"""Copies of all pictures of a folder: the run that trees and sequences share."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from torch import Tensor

from blemish.core.errors import InputError, StorageError, about
from blemish.core.files import write_files
from blemish.core.printable import first_few
from blemish.core.types import Square
from blemish.corruptions.inputs import MIN_SIDE
from blemish.data.formats import check_size
from blemish.data.images import as_picture, picture_batch
from blemish.data.manifest import SetInfo
from blemish.data.pictures import ORIENTATION, decode_picture, encode_picture, resize_and_crop
from blemish.evaluation.executors.base import Calls, Executor
from blemish.export.journal import Entry, Journal
from blemish.export.manifest import opened_set, write_manifest
from blemish.export.outcome import Failure, Outcome
from blemish.export.recipe import PictureRecipe
from blemish.export.resume import check_picture
from blemish.export.workers import run_tasks

_log = logging.getLogger(__name__)

_SHOWN = 5

RecipeKind = TypeVar("RecipeKind", bound=PictureRecipe)

Advance = Callable[[Outcome, int], None]
"""Called after each picture with what is done, and how many pictures are left."""


@dataclass(frozen=True)
class _Task:
    """A picture, and what the journal knows of its copies."""

    name: str
    known: Entry | None

    def __str__(self) -> str:
        return self.name


class Copies(NamedTuple):
    """Copies of a picture that are made together, even where one is missing: so a resumed run computes the same.

    Each has a key in the journal; ``make`` gives them in this order, as (C, H, W) tensors.
    """

    keys: list[str]
    preset: str
    make: Callable[[], Iterator[Tensor]]


@dataclass(frozen=True)
class PictureWork(ABC, Generic[RecipeKind]):
    """Makes the copies of one picture of the folder ``root``, which is decoded once, in a worker."""

    root: Path
    target: Path
    recipe: RecipeKind
    quick: bool

    crops_first: ClassVar[bool] = True

    @abstractmethod
    def info(self) -> SetInfo:
        """Everything that decides the pixels, for the manifest; its corruptions are folders."""

    @abstractmethod
    def keys(self) -> list[str]:
        """The keys of all copies that a picture can have."""

    @abstractmethod
    def path(self, name: str, key: str) -> Path:
        """The file of a copy."""

    @abstractmethod
    def condition(self, key: str) -> str | None:
        """What a copy is an example of, for counting; None for a further file of the same one."""

    @abstractmethod
    def copies(self, name: str, levels: Tensor) -> list[Copies]:
        """All copies of a picture, given as (1, C, H, W)."""

    def __call__(self, task: _Task) -> tuple[Outcome, Entry | None]:
        """Make what is missing; also the line for the journal, unless everything was there."""
        source = self.root / task.name
        paths = {key: self.path(task.name, key) for key in self.keys()}
        try:
            checked = check_picture(source, task.name, paths, task.known, quick=self.quick)
            if len(checked.intact) == len(paths):
                return Outcome(skipped=len(paths)), checked.entry({})
            crop = self.recipe.crop if self.crops_first else None
            levels, orientation = load_picture(source, checked.content, resize=self.recipe.resize, crop=crop)
            check_size(self.recipe.file_format, *levels.shape[-2:])
            groups = self.copies(task.name, levels)
            todo = [(group, group.make()) for group in groups if not checked.intact >= {*group.keys}]
        except InputError as error:
            return Outcome(failures=[Failure(task.name, str(error).removeprefix(f"{source}: "))]), None
        wanted = {key for group in groups for key in group.keys}
        outcome = Outcome(skipped=len(checked.intact & wanted))
        if todo:
            outcome.presets[todo[0][0].preset] += 1
        for key in () if task.known is None else task.known.copies.keys() & paths.keys() - wanted:
            paths[key].unlink(missing_ok=True)  # of a picture of that name that had more of them
        key_of = {paths[key]: key for key in wanted - checked.intact}
        outcome.again = sum(path.exists() for path in key_of)
        contents = (
            (paths[key], encode_picture(as_picture(image), self.recipe.file_format, orientation=orientation))
            for group, images in todo
            for key, image in zip(group.keys, images, strict=True)
            if key not in checked.intact
        )
        digests = {key_of[path]: digest for path, digest in write_files(contents, destination=self.target)}
        outcome.written = len(digests)
        return outcome, checked.entry(digests)


def load_picture(
    path: Path, content: bytes, *, resize: int | None = None, crop: int | Square | None = None
) -> tuple[Tensor, int | None]:
    """A picture as a batch of one, (1, C, H, W), and its EXIF orientation."""
    picture = decode_picture(content, os.fspath(path))
    orientation = picture.getexif().get(ORIENTATION)
    with about(str(path)):
        picture = resize_and_crop(picture, resize=resize, crop=crop)
        check_side(picture.height, picture.width)
    return picture_batch(picture), orientation


def check_side(height: int, width: int) -> None:
    """Refuse a picture that is too small to be corrupted."""
    if min(height, width) < MIN_SIDE:
        raise InputError(f"{width}×{height} pixels; expected at least {MIN_SIDE}×{MIN_SIDE}")


def check_apart(root: Path, target: Path) -> None:
    """Refuse to write into the source, or to read from the destination."""
    source, destination = root.resolve(), target.resolve()
    if source == destination or source in destination.parents or destination in source.parents:
        raise InputError(f"source {root} and destination {target} lie inside each other; choose another destination")


def check_distinct(names: Sequence[str], stored: Callable[[str], str], clash: str) -> None:
    """Refuse pictures whose copies would have the same ``stored`` name; ``clash`` says what they would do."""
    taken: dict[str, str] = {}
    for name in names:
        other = taken.setdefault(stored(name), name)
        if other != name:
            raise InputError(f"{other} and {name} would {clash} {stored(name)}; rename one of them")


def write_set(
    work: PictureWork[Any],
    names: Sequence[str],
    *,
    executor: Executor,
    whole: bool = True,
    prune: bool = False,
    advance: Advance = lambda *_: None,
) -> Outcome:
    """Make the copies of these pictures.

    ``whole`` says that the names are all pictures of the folder. Where copies of others are there, the run is refused,
    or with ``prune`` they are removed.
    """
    target, wanted = work.target, work.info()
    outputs = [target / folder for folder in wanted.corruptions]
    outcome, start = Outcome(), time.perf_counter()
    _log.info("copies of %d pictures go to %s, by %d at a time", len(names), target, executor.workers)
    with opened_set(target, wanted, outputs) as (info, journal):
        if whole:
            outcome.removed = without_source(target, work.path, journal, {*names}, prune=prune)
        write_manifest(target, info)
        results = run_tasks(Calls(work), _Tasks(names, journal), executor=executor, folder=target)
        with contextlib.closing(results):
            for done, (made, entry) in enumerate(results, start=1):
                outcome.add(made)
                if entry is not None:
                    journal.add(entry)
                advance(outcome, len(names) - done)
        if whole and info != wanted:
            outcome.notes += _unequal(journal.counts(work.condition))
    outcome.failures.sort(key=lambda failure: failure.name)
    _log.info("%s: %d written, %d skipped, %d failed", target, outcome.written, outcome.skipped, len(outcome.failures))
    _log.debug("%s took %.2f s", target, time.perf_counter() - start)
    return outcome


@dataclass(frozen=True)
class _Tasks:
    """Tasks that are made when they are needed: each holds the digests of all copies of a picture."""

    names: Sequence[str]
    journal: Journal

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[_Task]:
        return (_Task(name, self.journal.entry(name)) for name in self.names)


def without_source(
    target: Path, path: Callable[[str, str], Path], journal: Journal, names: Collection[str], *, prune: bool
) -> int:
    """Refuse copies of pictures that are not in the source any more, or remove them; returns how many were removed.

    ``path`` tells the file of a copy from the names of its source and of the copy.
    """
    gone = [name for name in journal.names() if name not in names]
    if gone and not prune:
        raise InputError(
            f"{target} holds copies of {len(gone)} pictures that are not in the source any more "
            f"({first_few(gone, _SHOWN)}); put them back, remove the copies with --prune, or choose another destination"
        )
    count = 0
    for name in gone:
        entry = journal.entry(name)
        count += sum(_removed(path(name, key), target) for key in (() if entry is None else entry.copies))
        journal.forget(name)
    journal.sort()
    return count


def _removed(path: Path, target: Path) -> bool:
    """Remove a file, and the folders that are empty without it, but for the destination itself."""
    if not path.parent.resolve().is_relative_to(target.resolve()):  # through a link that somebody has put there
        return False
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageError(f"cannot remove {path}: {error.strerror or error}") from error
    with contextlib.suppress(OSError):
        for folder in path.parents:
            if folder.samefile(target):
                break
            folder.rmdir()
    return True


def _unequal(counts: Mapping[str, int]) -> list[str]:
    """A note where some conditions have fewer pictures than others, which were made when there were fewer."""
    most = max(counts.values(), default=0)
    fewer = [f"{condition} has {count}" for condition, count in sorted(counts.items()) if count < most]
    shown = first_few(fewer, _SHOWN)
    note = f"not all conditions have the same {most} pictures ({shown}); name all of them to make them equal"
    return [note] if fewer else []
