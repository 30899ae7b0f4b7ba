"""Perturbation sequences on disk: a tree of class folders as ``<sequence>/<class>/<file stem>/<frame>``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.rng import check_seed
from blemish.core.types import Square
from blemish.corruptions.imagenet_p import DIFFICULTIES, PerturbationSequence, sequences
from blemish.data.formats import picture_format
from blemish.data.manifest import CopiesInfo, SetInfo
from blemish.data.pictures import list_pictures, picture_id
from blemish.evaluation.executors.base import Executor
from blemish.export.manifest import NEAREST, folder_mark
from blemish.export.outcome import Outcome
from blemish.export.recipe import PictureRecipe
from blemish.export.sets import Copies, PictureWork, check_apart, check_distinct, write_set
from blemish.export.workers import executor_for


@dataclass(frozen=True)
class SequenceRecipe(PictureRecipe):
    """Which sequences are made of every picture, and how their frames are stored."""

    sequences: tuple[PerturbationSequence, ...]
    difficulty: int = 1
    _: KW_ONLY
    file_format: str = "png"

    def folder(self, sequence: PerturbationSequence) -> str:
        """The published name: without the namespace, and a noise with the difficulty it has from 2 on.

        Temporal sequences have the same frames at every difficulty, and so the same folder.
        """
        name = sequence.name.rpartition(":")[2]
        return f"{name}_{self.difficulty}" if sequence.noise and self.difficulty > 1 else name

    def longest(self, sequence: PerturbationSequence) -> int:
        """The most frames that a picture can have."""
        return max(sequence.length(name) for name in ([self.preset] if self.preset else sequence.presets))


def make_sequence_recipe(
    names: Iterable[str] | None = None,
    *,
    difficulty: int = 1,
    seed: int = 0,
    preset: str | None = None,
    file_format: str = "png",
    resize: int | None = None,
    crop: int | Square | None = None,
) -> SequenceRecipe:
    """A checked recipe; without names it holds all fifteen sequences. Names given twice count once."""
    chosen = tuple(sequences[name] for name in dict.fromkeys(sequences if names is None else names))
    if not chosen:
        raise InputError("no sequences; expected at least one name")
    if difficulty not in DIFFICULTIES:
        raise InputError(f"difficulty {difficulty!r}; expected 1, 2 or 3")
    if preset is not None:
        for sequence in chosen:
            sequence.length(preset)  # refuses an unknown preset, and names the known ones
    return SequenceRecipe(
        chosen, difficulty, seed=check_seed(seed), preset=preset, file_format=file_format, resize=resize, crop=crop
    )


def corrupt_sequences(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    recipe: SequenceRecipe,
    *,
    jobs: int = 1,
    progress: ProgressReport = tell_nobody,
    executor: Executor | None = None,
    quick: bool = False,
    prune: bool = False,
) -> Outcome:
    """Write the frames of one picture, or of every picture below a folder; those that cannot be used are reported.

    Pictures are resized first, and frames cropped last. A picture's id is the hash of ``<class>/<file>``. Finished
    frames are skipped, so a stopped run is continued by running it again; the number of ``jobs`` changes nothing, nor
    does an ``executor`` in their place. ``quick`` and ``prune`` are those of `corrupt_tree`.
    """
    root, target = Path(source), Path(destination)
    whole = not root.is_file()
    if whole:
        names = list_pictures(root)
        check_apart(root, target)
    else:
        root, names = root.parent, [root.name]
    check_distinct(names, _stem, "share the folder")
    frames = sum(recipe.longest(sequence) for sequence in recipe.sequences)

    def advance(outcome: Outcome, left: int) -> None:
        done = outcome.written + outcome.skipped
        progress(done, done + left * frames)

    work = _SequenceWork(root, target, recipe, quick)
    return write_set(work, names, executor=executor_for(jobs, executor), whole=whole, prune=prune, advance=advance)


def _stem(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


@dataclass(frozen=True)
class _SequenceWork(PictureWork[SequenceRecipe]):
    """Frames have their sequence and number as key. Some pictures have fewer frames than others."""

    crops_first = False

    def info(self) -> SetInfo:
        """Sequences stand in the manifest where corruptions do."""
        recipe = self.recipe
        return SetInfo(
            layout="sequences",
            seed=recipe.seed,
            preset=recipe.preset or NEAREST,
            format=recipe.file_format,
            source=folder_mark(self.root),
            **recipe.sizes,
            corruptions={
                recipe.folder(sequence): CopiesInfo(
                    sequence.version,
                    sequence=sequence.name,
                    difficulty=recipe.difficulty if sequence.noise else None,
                )
                for sequence in recipe.sequences
            },
            severities=(),
        )

    def keys(self) -> list[str]:
        recipe = self.recipe
        return [key for sequence in recipe.sequences for key in self._keys(sequence, recipe.longest(sequence))]

    def _keys(self, sequence: PerturbationSequence, length: int) -> list[str]:
        return [f"{self.recipe.folder(sequence)}/{index:02d}" for index in range(length)]

    def path(self, name: str, key: str) -> Path:
        folder, _, frame = key.partition("/")
        return self.target / folder / _stem(name) / f"{frame}{picture_format(self.recipe.file_format).suffixes[0]}"

    def condition(self, key: str) -> str | None:
        """The first frame counts for its sequence."""
        folder, _, frame = key.partition("/")
        return folder if frame == "00" else None

    def copies(self, name: str, levels: Tensor) -> list[Copies]:
        groups = []
        for sequence in self.recipe.sequences:
            preset = self.recipe.preset or sequence.preset(levels.shape[-2], levels.shape[-1], self.recipe.crop)
            make = partial(_frames, sequence, levels, self.recipe, name)
            groups.append(Copies(self._keys(sequence, sequence.length(preset)), preset, make))
        return groups


def _frames(sequence: PerturbationSequence, levels: Tensor, recipe: SequenceRecipe, name: str) -> Iterator[Tensor]:
    frames = sequence.frames(
        levels,
        seed=recipe.seed,
        ids=[picture_id(name)],
        difficulty=recipe.difficulty,
        preset=recipe.preset,
        crop=recipe.crop,
    )
    return (frame[0] for frame in frames)
