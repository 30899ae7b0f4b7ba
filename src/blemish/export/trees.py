"""Corrupted copies of pictures: one file, or a tree of class folders as ``<corruption>/<severity>/<class>/<file>``."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.reading import read_bytes
from blemish.corruptions.base import Corruption
from blemish.corruptions.severity import severity_text
from blemish.data.formats import SUFFIXES, check_size, format_of, picture_format, stored_name
from blemish.data.images import as_picture
from blemish.data.manifest import SetInfo
from blemish.data.pictures import PICTURE_SUFFIXES, encode_picture, list_pictures, picture_id
from blemish.evaluation.executors.base import Executor
from blemish.evaluation.executors.in_process import InProcess
from blemish.export.labels import check_layout, check_linkable, moving_notes, place_labels
from blemish.export.layouts import TREE, Layout
from blemish.export.manifest import folder_mark, set_info
from blemish.export.outcome import Outcome
from blemish.export.recipe import Recipe
from blemish.export.sets import Copies, PictureWork, check_apart, check_distinct, load_picture, write_set
from blemish.export.workers import executor_for


def corrupt_tree(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    recipe: Recipe,
    *,
    jobs: int = 1,
    progress: ProgressReport = tell_nobody,
    executor: Executor | None = None,
    quick: bool = False,
    prune: bool = False,
    layout: Layout = TREE,
    labels: str = "link",
    only: Sequence[str] = (),
) -> Outcome:
    """Write corrupted copies of every picture below ``source``; pictures that cannot be read are reported at the end.

    A picture's id is the hash of ``<class>/<file>``. Finished files are skipped, so a stopped run is continued by
    running it again. Pictures and copies are compared with the digests in the manifest (``quick``: with sizes and
    times), and copies that are damaged, or of a picture that has changed, are made again. Copies of pictures that are
    gone are refused, or with ``prune`` removed.

    A ``layout`` other than any tree says which pictures are corrupted, and which files are ``labels`` of them: these
    are linked into the folder of every condition, copied, or left out (``none``). With ``only`` the names of pictures
    have to match one of these patterns, such as ``val2017/*``.

    Nothing but the recipe and the pictures decides the result; the number of ``jobs`` does not, nor the ``executor``
    that may be given in their place. Its machines have to share both folders.
    """
    root, target = Path(source), Path(destination)
    whole = layout.pictures(list_pictures(root))
    names = [name for name in whole if not only or any(fnmatchcase(name, pattern) for pattern in only)]
    if not names:
        what = f"that match {', '.join(only)}, of {len(whole)}" if whole else f"in the places of a {layout.title}"
        raise InputError(f"{root}: no pictures {what}")
    check_layout(layout, recipe.file_format, labels)
    check_apart(root, target)
    if layout.labels:
        check_linkable(root, target, labels)
    check_distinct(names, lambda name: stored_name(name, recipe.file_format), "both be stored as")
    total = len(names) * recipe.copies

    def advance(outcome: Outcome, _left: int) -> None:
        progress(outcome.written + outcome.skipped + len(outcome.failures) * recipe.copies, total)

    work = _TreeWork(root, target, recipe, quick, layout.name)
    outcome = write_set(
        work, names, executor=executor_for(jobs, executor), whole=not only, prune=prune, advance=advance
    )
    if layout.labels:
        folders = [target / key for key in work.keys()]  # noqa: SIM118
        outcome.notes += place_labels(layout, root, folders, recipe.file_format, way=labels, pictures=names)
        outcome.notes += [] if labels == "none" else moving_notes(recipe.corruptions)
    return outcome


def corrupt_picture(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    recipe: Recipe,
    *,
    progress: ProgressReport = tell_nobody,
    quick: bool = False,
) -> Outcome:
    """Write corrupted copies of one picture: into a folder as a tree of one, or as one file named with its suffix.

    A single file takes one corruption and one severity, the format comes from its suffix, and it is overwritten.
    """
    path, target = Path(source), Path(destination)
    suffix = target.suffix.lower()
    if suffix and suffix not in PICTURE_SUFFIXES and not target.is_dir():
        raise _unknown_kind(target)
    levels, orientation = load_picture(path, read_bytes(path), resize=recipe.resize, crop=recipe.crop)
    if target.is_dir() or suffix not in PICTURE_SUFFIXES:
        work = _TreeWork(path.parent, target, recipe, quick)
        outcome = write_set(work, [path.name], executor=InProcess(), whole=False)
        progress(outcome.written + outcome.skipped, recipe.copies)
        for failure in outcome.failures:
            raise InputError(f"{path}: {failure.reason}")
        return outcome
    file_format = format_of(suffix)
    if file_format is None:
        raise _unknown_kind(target)
    if picture_format(recipe.file_format).kind == file_format:
        file_format = recipe.file_format  # of some quality
    if recipe.copies != 1:
        raise InputError(
            f"{recipe.copies} corrupted copies for one file {target}; name a folder, or one corruption and severity"
        )
    if target.exists() and target.samefile(path):
        raise InputError(f"{target} is the source itself; choose another destination")
    check_size(file_format, *levels.shape[-2:])
    [image] = _corrupted(levels, recipe.corruptions[0], recipe, path.name)
    write_bytes(target, encode_picture(as_picture(image), file_format, orientation=orientation))
    return Outcome(written=1, presets=Counter([_preset(recipe, levels)]))


def _unknown_kind(target: Path) -> InputError:
    known = ", ".join(suffix for suffixes in SUFFIXES.values() for suffix in suffixes)
    return InputError(
        f"{target}: cannot write {target.suffix} files; expected a name that ends in one of {known}, or a folder (one "
        "whose name has a dot has to be there already)"
    )


@dataclass(frozen=True)
class _TreeWork(PictureWork[Recipe]):
    """Copies have the folder of their condition as key."""

    layout: str = TREE.name

    def info(self) -> SetInfo:
        origin = {"format": self.recipe.file_format, "source": folder_mark(self.root), **self.recipe.sizes}
        return set_info(self.recipe, layout=self.layout, labelled=self.layout != TREE.name, **origin)

    def keys(self) -> list[str]:
        return [key for corruption in self.recipe.corruptions for key in self._keys(corruption)]

    def _keys(self, corruption: Corruption) -> list[str]:
        return [f"{corruption.name}/{severity_text(severity)}" for severity in self.recipe.severities]

    def path(self, name: str, key: str) -> Path:
        return self.target / key / stored_name(name, self.recipe.file_format)

    def condition(self, key: str) -> str:
        return key

    def copies(self, name: str, levels: Tensor) -> list[Copies]:
        preset = _preset(self.recipe, levels)
        return [
            Copies(self._keys(corruption), preset, partial(_corrupted, levels, corruption, self.recipe, name))
            for corruption in self.recipe.corruptions
        ]


def _corrupted(levels: Tensor, corruption: Corruption, recipe: Recipe, name: str) -> Iterator[Tensor]:
    """A copy per severity."""
    copies = levels.repeat(len(recipe.severities), 1, 1, 1)
    ids = [picture_id(name)] * len(copies)
    yield from corruption(copies, severity=recipe.severities, seed=recipe.seed, ids=ids, preset=recipe.preset)


def _preset(recipe: Recipe, levels: Tensor) -> str:
    return recipe.preset or recipe.corruptions[0].table.preset(*levels.shape[-2:])
