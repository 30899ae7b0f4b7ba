"""Corrupted copies of pictures: one file, or a tree of class folders as ``<corruption>/<severity>/<class>/<file>``."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from blemish.corruptions.base import MIN_SIDE, Corruption
from blemish.corruptions.severity import severity_text
from blemish.data.pictures import PICTURE_SUFFIXES, list_pictures, picture_id, read_picture, resize_and_crop
from blemish.execution.base import Executor
from blemish.execution.in_process import InProcess
from blemish.storage.files import ORIENTATION, check_folder, encode_picture, staged_destination, write_bytes
from blemish.storage.manifest import check_manifest, protocol, write_manifest
from blemish.storage.recipe import FORMATS, Recipe
from blemish.storage.results import Failure, Outcome, Progress
from blemish.storage.workers import executor_for, run_tasks
from blemish.types import InputError

__all__ = ["changed_since", "check_apart", "corrupt_picture", "corrupt_tree", "folder_mark", "to_picture"]


def corrupt_tree(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    recipe: Recipe,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Outcome:
    """Write corrupted copies of every picture below ``source``; pictures that cannot be read are reported at the end.

    A picture's id is the hash of ``<class>/<file>``. Finished files are skipped, so a stopped run is continued by
    running it again. Nothing but the recipe and the pictures decides the result; the number of ``jobs`` does not, nor
    the ``executor`` that may be given in their place. Its machines have to share both folders.
    """
    root, target = Path(source), Path(destination)
    names = list_pictures(root)
    check_apart(root, target)
    _check_unique(names, recipe.file_format)
    return _write(root, target, names, recipe, workers=executor_for(jobs, executor), progress=progress)


def corrupt_picture(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    recipe: Recipe,
    *,
    progress: Progress | None = None,
) -> Outcome:
    """Write corrupted copies of one picture: into a folder as a tree of one, or as one file named with its suffix.

    A single file takes one corruption and one severity, the format comes from its suffix, and it is overwritten.
    """
    path, target = Path(source), Path(destination)
    suffix = target.suffix.lower()
    picture, orientation = _load(path, recipe)
    if target.is_dir() or suffix not in PICTURE_SUFFIXES:
        outcome = _write(path.parent, target, [path.name], recipe, workers=InProcess(), progress=progress)
        for failure in outcome.failures:
            raise InputError(f"{path}: {failure.reason}")
        return outcome
    file_format = next((name for name, suffixes in FORMATS.items() if suffix in suffixes), None)
    if file_format is None:
        raise InputError(f"{target}: cannot write {suffix} files; expected .jpg or .png, or a folder")
    if recipe.copies != 1:
        raise InputError(
            f"{recipe.copies} corrupted copies for one file {target}; name a folder, or one corruption and severity"
        )
    if target.exists() and target.samefile(path):
        raise InputError(f"{target} is the source itself; choose another destination")
    result = _corrupted(picture, recipe.corruptions[0], recipe, path.name)[0]
    write_bytes(target, encode_picture(to_picture(result), file_format, orientation=orientation))
    return Outcome(written=1, presets=Counter([_preset(recipe.corruptions[0], recipe, picture)]))


def _write(
    root: Path, target: Path, names: list[str], recipe: Recipe, *, workers: Executor, progress: Progress | None
) -> Outcome:
    sizes = {"resize": recipe.resize, "crop": recipe.crop}
    wanted = protocol(recipe, layout="tree", format=recipe.file_format, source=folder_mark(root), **sizes)
    check_folder(target)
    entries = check_manifest(target, wanted, [target / corruption.name for corruption in recipe.corruptions])
    total = len(names) * recipe.copies
    outcome = Outcome()
    with staged_destination(target):
        write_manifest(target, entries)
        results = run_tasks(_PictureWork(root, target, recipe), names, executor=workers, folder=target)
        with contextlib.closing(results):
            for result in results:
                outcome.add(result)
                if progress is not None:
                    progress(outcome.written + outcome.skipped + len(outcome.failures) * recipe.copies, total)
    outcome.failures.sort(key=lambda failure: failure.name)
    return outcome


def folder_mark(root: Path) -> str:
    """A folder's name and a digest of its place: another folder's pictures of the same name are not these."""
    place = hashlib.blake2b(root.resolve().as_posix().encode(), digest_size=4).hexdigest()
    return f"{root.resolve().name} ({place})"


def changed_since(source: Path, copies: Iterable[Path]) -> str | None:
    """Why a picture has no place beside its finished copies: if it was changed later, further ones would be others."""
    try:
        oldest = min((copy.stat().st_mtime_ns for copy in copies), default=None)
        changed = oldest is not None and source.stat().st_mtime_ns > oldest
    except OSError:
        return None  # what is wrong with it shows when it is read
    return "changed after copies of it were made; remove them, or choose another destination" if changed else None


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
    """All corrupted copies of one picture, which is decoded once."""

    root: Path
    target: Path
    recipe: Recipe

    def __call__(self, name: str) -> Outcome:
        recipe = self.recipe
        finished = {output for output in self._outputs(name).values() if output.exists()}
        if (reason := changed_since(self.root / name, finished)) is not None:
            return Outcome(failures=[Failure(name, reason)])
        outcome = Outcome(skipped=len(finished))
        if len(finished) == recipe.copies:
            return outcome
        try:
            picture, orientation = _load(self.root / name, recipe)
        except InputError as error:
            reason = str(error).removeprefix(f"{self.root / name}: ")
            return Outcome(failures=[Failure(name, reason)])
        outcome.presets[_preset(recipe.corruptions[0], recipe, picture)] += 1
        for corruption in recipe.corruptions:
            outputs = [self._output(name, corruption, severity) for severity in recipe.severities]
            if finished.issuperset(outputs):
                continue
            # All severities are made even where one is missing, so that a resumed run repeats the same computation.
            copies = _corrupted(picture, corruption, recipe, name)
            for output, copy in zip(outputs, copies, strict=True):
                if output not in finished:
                    content = encode_picture(to_picture(copy), recipe.file_format, orientation=orientation)
                    write_bytes(output, content, destination=self.target)
                    outcome.written += 1
        return outcome

    def _outputs(self, name: str) -> dict[tuple[str, float], Path]:
        return {
            (corruption.name, severity): self._output(name, corruption, severity)
            for corruption in self.recipe.corruptions
            for severity in self.recipe.severities
        }

    def _output(self, name: str, corruption: Corruption, severity: float) -> Path:
        return self.target / corruption.name / severity_text(severity) / _stored_name(name, self.recipe.file_format)


def _load(path: Path, recipe: Recipe) -> tuple[Image.Image, int | None]:
    picture = read_picture(path)
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
