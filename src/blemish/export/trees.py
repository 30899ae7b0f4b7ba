"""Corrupted copies of pictures: one file, or a tree of class folders as ``<corruption>/<severity>/<class>/<file>``."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.files import write_bytes, write_files
from blemish.core.printable import as_text
from blemish.core.reading import read_bytes
from blemish.corruptions.base import MIN_SIDE, Corruption
from blemish.corruptions.severity import severity_text
from blemish.data.encoding import ORIENTATION, encode_picture
from blemish.data.pictures import (
    PICTURE_SUFFIXES,
    decode_picture,
    list_pictures,
    picture_id,
    resize_and_crop,
)
from blemish.evaluation.executors.base import Executor
from blemish.evaluation.executors.in_process import InProcess
from blemish.export.manifest import protocol
from blemish.export.outcome import Failure, Outcome, Progress
from blemish.export.recipe import FORMATS, Recipe
from blemish.export.resume import Checked, check_picture
from blemish.export.sets import PictureResult, PictureTask, Writing, write_set
from blemish.export.workers import executor_for

__all__ = ["check_apart", "corrupt_picture", "corrupt_tree", "folder_mark", "to_picture"]


def corrupt_tree(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    recipe: Recipe,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    executor: Executor | None = None,
    quick: bool = False,
    prune: bool = False,
) -> Outcome:
    """Write corrupted copies of every picture below ``source``; pictures that cannot be read are reported at the end.

    A picture's id is the hash of ``<class>/<file>``. Finished files are skipped, so a stopped run is continued by
    running it again. Pictures and copies are compared with the digests in the manifest (``quick``: with sizes and
    times), and copies that are damaged, or of a picture that has changed, are made again. Copies of pictures that are
    gone are refused, or with ``prune`` removed.

    Nothing but the recipe and the pictures decides the result; the number of ``jobs`` does not, nor the ``executor``
    that may be given in their place. Its machines have to share both folders.
    """
    root, target = Path(source), Path(destination)
    names = list_pictures(root)
    check_apart(root, target)
    _check_unique(names, recipe.file_format)
    total = len(names) * recipe.copies

    def advance(outcome: Outcome, _left: int) -> None:
        if progress is not None:
            progress(outcome.written + outcome.skipped + len(outcome.failures) * recipe.copies, total)

    writing = Writing(executor_for(jobs, executor), prune=prune, advance=advance)
    return _write(root, target, names, recipe, writing, quick=quick)


def corrupt_picture(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    recipe: Recipe,
    *,
    progress: Progress | None = None,
    quick: bool = False,
) -> Outcome:
    """Write corrupted copies of one picture: into a folder as a tree of one, or as one file named with its suffix.

    A single file takes one corruption and one severity, the format comes from its suffix, and it is overwritten.
    """
    path, target = Path(source), Path(destination)
    suffix = target.suffix.lower()
    if suffix and suffix not in PICTURE_SUFFIXES and not target.is_dir():
        raise _unknown_kind(target)
    picture, orientation = _load(path, read_bytes(path), recipe)
    if target.is_dir() or suffix not in PICTURE_SUFFIXES:
        outcome = _write(path.parent, target, [path.name], recipe, Writing(InProcess(), whole=False), quick=quick)
        if progress is not None:
            progress(outcome.written + outcome.skipped, recipe.copies)
        for failure in outcome.failures:
            raise InputError(f"{path}: {failure.reason}")
        return outcome
    file_format = next((name for name, suffixes in FORMATS.items() if suffix in suffixes), None)
    if file_format is None:
        raise _unknown_kind(target)
    if recipe.copies != 1:
        raise InputError(
            f"{recipe.copies} corrupted copies for one file {target}; name a folder, or one corruption and severity"
        )
    if target.exists() and target.samefile(path):
        raise InputError(f"{target} is the source itself; choose another destination")
    result = _corrupted(picture, recipe.corruptions[0], recipe, path.name)[0]
    write_bytes(target, encode_picture(to_picture(result), file_format, orientation=orientation))
    return Outcome(written=1, presets=Counter([_preset(recipe.corruptions[0], recipe, picture)]))


def _unknown_kind(target: Path) -> InputError:
    known = ", ".join(suffix for suffixes in FORMATS.values() for suffix in suffixes)
    return InputError(
        f"{target}: cannot write {target.suffix} files; expected a name that ends in one of {known}, or a folder (one "
        "whose name has a dot has to be there already)"
    )


def _write(root: Path, target: Path, names: list[str], recipe: Recipe, writing: Writing, *, quick: bool) -> Outcome:
    sizes = {"resize": recipe.resize, "crop": recipe.crop}
    wanted = protocol(recipe, layout="tree", format=recipe.file_format, source=folder_mark(root), **sizes)
    return write_set(_PictureWork(root, target, recipe, quick), target, names, wanted, writing)


def folder_mark(root: Path) -> str:
    """A folder's name and a digest of its place: another folder's pictures of the same name are not these."""
    place = hashlib.blake2b(os.fsencode(root.resolve().as_posix()), digest_size=4).hexdigest()
    return f"{as_text(root.resolve().name)} ({place})"


def check_apart(root: Path, target: Path) -> None:
    """Refuse to write into the source, or to read from the destination."""
    source, destination = root.resolve(), target.resolve()
    if source == destination or source in destination.parents or destination in source.parents:
        raise InputError(f"source {root} and destination {target} lie inside each other; choose another destination")


def _check_unique(names: list[str], file_format: str) -> None:
    taken: dict[str, str] = {}
    for name in names:
        other = taken.setdefault(_stored_name(name, file_format), name)
        if other != name:
            raise InputError(
                f"{other} and {name} would both be stored as {_stored_name(name, file_format)}; rename one of them"
            )


def _stored_name(name: str, file_format: str) -> str:
    """The name of a copy: the picture's own if its suffix fits the format, else with another suffix."""
    suffixes = FORMATS[file_format]
    path = PurePosixPath(name)
    return name if path.suffix.lower() in suffixes else str(path.with_suffix(suffixes[0]))


@dataclass(frozen=True)
class _PictureWork:
    """All corrupted copies of one picture, which is decoded once. Copies have the folder of their condition as key."""

    root: Path
    target: Path
    recipe: Recipe
    quick: bool

    def __call__(self, task: PictureTask) -> PictureResult:
        source = self.root / task.name
        wanted = {
            key: self.path(task.name, key) for corruption in self.recipe.corruptions for key in self._keys(corruption)
        }
        try:
            checked = check_picture(source, task.name, wanted, task.known, quick=self.quick)
            outcome = Outcome(skipped=len(checked.intact))
            if len(checked.intact) == len(wanted):
                return PictureResult(outcome, checked.entry({}))
            picture, orientation = _load(source, checked.content, self.recipe)
        except InputError as error:
            return PictureResult(Outcome(failures=[Failure(task.name, str(error).removeprefix(f"{source}: "))]))
        outcome.presets[_preset(self.recipe.corruptions[0], self.recipe, picture)] += 1
        key_of = {path: key for key, path in wanted.items() if key not in checked.intact}
        outcome.again = sum(path.exists() for path in key_of)
        copies = self._copies(checked, picture, orientation)
        digests = {key_of[path]: digest for path, digest in write_files(copies, destination=self.target)}
        outcome.written = len(digests)
        return PictureResult(outcome, checked.entry(digests))

    def _copies(self, checked: Checked, picture: Image.Image, orientation: int | None) -> Iterator[tuple[Path, bytes]]:
        for corruption in self.recipe.corruptions:
            keys = self._keys(corruption)
            if checked.intact >= {*keys}:
                continue
            # All severities are made even where one is missing, so that a resumed run repeats the same computation.
            copies = _corrupted(picture, corruption, self.recipe, checked.name)
            for key, copy in zip(keys, copies, strict=True):
                if key not in checked.intact:
                    content = encode_picture(to_picture(copy), self.recipe.file_format, orientation=orientation)
                    yield self.path(checked.name, key), content

    def _keys(self, corruption: Corruption) -> list[str]:
        return [f"{corruption.name}/{severity_text(severity)}" for severity in self.recipe.severities]

    def path(self, name: str, key: str) -> Path:
        """The file of a copy."""
        return self.target / key / _stored_name(name, self.recipe.file_format)

    def condition(self, key: str) -> str:
        """Every copy counts."""
        return key


def _load(path: Path, content: bytes, recipe: Recipe) -> tuple[Image.Image, int | None]:
    picture = decode_picture(content, os.fspath(path))
    orientation = picture.getexif().get(ORIENTATION)
    try:
        picture = resize_and_crop(picture, resize=recipe.resize, crop=recipe.crop)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if min(picture.size) < MIN_SIDE:
        raise InputError(f"{path}: {picture.width}×{picture.height} pixels; expected at least {MIN_SIDE}×{MIN_SIDE}")
    return picture, orientation


def _corrupted(picture: Image.Image, corruption: Corruption, recipe: Recipe, name: str) -> Tensor:
    """A copy per severity, (S, C, H, W)."""
    levels = torch.from_numpy(np.array(picture)).reshape(picture.height, picture.width, -1)
    copies = levels.permute(2, 0, 1).repeat(len(recipe.severities), 1, 1, 1)
    ids = [picture_id(name)] * len(copies)
    return corruption(copies, severity=recipe.severities, seed=recipe.seed, ids=ids, preset=recipe.preset)


def to_picture(image: Tensor) -> Image.Image:
    """A (C, H, W) uint8 tensor as a picture."""
    levels = image.permute(1, 2, 0).contiguous().numpy()
    return Image.fromarray(levels[:, :, 0] if levels.shape[2] == 1 else levels)


def _preset(corruption: Corruption, recipe: Recipe, picture: Image.Image) -> str:
    return recipe.preset or corruption.table.preset(picture.height, picture.width)
