"""Perturbation sequences on disk: a tree of class folders as ``<sequence>/<class>/<file stem>/<frame>``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.files import write_files
from blemish.core.rng import check_seed
from blemish.corruptions.imagenet_p import DIFFICULTIES, PerturbationSequence, sequences
from blemish.data.encoding import ORIENTATION, encode_picture
from blemish.data.pictures import decode_picture, list_pictures, picture_id, resize_and_crop
from blemish.evaluation.executors.base import Executor
from blemish.export.outcome import Failure, Outcome, Progress
from blemish.export.recipe import FORMATS, check_sizes
from blemish.export.resume import Checked, check_picture
from blemish.export.sets import PictureResult, PictureTask, Writing, write_set
from blemish.export.trees import check_apart, folder_mark, to_picture
from blemish.export.workers import executor_for

__all__ = ["SequenceRecipe", "corrupt_sequences", "make_sequence_recipe"]


@dataclass(frozen=True)
class SequenceRecipe:
    """Which sequences are made of every picture, and how their frames are stored."""

    sequences: tuple[PerturbationSequence, ...]
    difficulty: int = 1
    seed: int = 0
    preset: str | None = None
    file_format: str = "png"
    resize: int | None = None
    crop: int | None = None

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
    crop: int | None = None,
) -> SequenceRecipe:
    """A checked recipe; without names it holds all fifteen sequences. Names given twice count once."""
    chosen = tuple(sequences[name] for name in dict.fromkeys(sequences if names is None else names))
    if not chosen:
        raise InputError("no sequences; expected at least one name")
    if difficulty not in DIFFICULTIES:
        raise InputError(f"difficulty {difficulty!r}; expected 1, 2 or 3")
    if file_format not in FORMATS:
        raise InputError(f"unknown format {file_format!r}; expected {' or '.join(FORMATS)}")
    if preset is not None:
        for sequence in chosen:
            sequence.length(preset)  # refuses an unknown preset, and names the known ones
    check_sizes(resize, crop)
    return SequenceRecipe(chosen, difficulty, check_seed(seed), preset, file_format, resize, crop)


def corrupt_sequences(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    recipe: SequenceRecipe,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
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
    _check_stems(names)
    frames = sum(recipe.longest(sequence) for sequence in recipe.sequences)

    def advance(outcome: Outcome, left: int) -> None:
        if progress is not None:
            done = outcome.written + outcome.skipped
            progress(done, done + left * frames)

    writing = Writing(executor_for(jobs, executor), whole=whole, prune=prune, advance=advance)
    wanted = {**_protocol(recipe), "source": folder_mark(root)}
    return write_set(_PictureWork(root, target, recipe, quick), target, names, wanted, writing)


def _protocol(recipe: SequenceRecipe) -> dict[str, Any]:
    """Everything that decides the pixels; sequences stand in the manifest where corruptions do."""
    return {
        "layout": "sequences",
        "seed": recipe.seed,
        "preset": recipe.preset or "nearest to the shorter side",
        "format": recipe.file_format,
        "resize": recipe.resize,
        "crop": recipe.crop,
        "corruptions": {
            recipe.folder(sequence): {"sequence": sequence.name, "version": sequence.version}
            | ({"difficulty": recipe.difficulty} if sequence.noise else {})
            for sequence in recipe.sequences
        },
        "severities": [],
    }


def _check_stems(names: list[str]) -> None:
    taken: dict[str, str] = {}
    for name in names:
        other = taken.setdefault(_stem(name), name)
        if other != name:
            raise InputError(f"{other} and {name} would share the folder {_stem(name)}; rename one of them")


def _stem(name: str) -> str:
    return str(PurePosixPath(name).with_suffix(""))


@dataclass(frozen=True)
class _PictureWork:
    """All sequences of one picture, which is decoded once. Frames have their sequence and number as key."""

    root: Path
    target: Path
    recipe: SequenceRecipe
    quick: bool

    def __call__(self, task: PictureTask) -> PictureResult:
        source, chosen = self.root / task.name, self.recipe.sequences
        try:
            # Some pictures have fewer frames than these.
            most = self._wanted(task.name, [self.recipe.longest(sequence) for sequence in chosen])
            checked = check_picture(source, task.name, most, task.known, quick=self.quick)
            if len(checked.intact) == len(most):
                return PictureResult(Outcome(skipped=len(most)), checked.entry({}))
            levels, orientation = _load(source, checked.content, self.recipe)
            lengths = [sequence.length(self._preset(sequence, levels)) for sequence in chosen]
            todo = [
                (sequence, self._keys(sequence, length), self._frames(task.name, sequence, levels))
                for sequence, length in zip(chosen, lengths, strict=True)
                if not checked.intact >= {*self._keys(sequence, length)}
            ]
        except InputError as error:
            return PictureResult(Outcome(failures=[Failure(task.name, str(error).removeprefix(f"{source}: "))]))
        wanted = self._wanted(task.name, lengths)
        outcome = Outcome(skipped=len(checked.intact & wanted.keys()))
        if todo:
            outcome.presets[self._preset(todo[0][0], levels)] += 1
        for key in [] if task.known is None else task.known.copies.keys() & most.keys() - wanted.keys():
            most[key].unlink(missing_ok=True)  # of a picture of that name that had more frames
        key_of = {path: key for key, path in wanted.items() if key not in checked.intact}
        outcome.again = sum(path.exists() for path in key_of)
        copies = (copy for _, keys, film in todo for copy in self._copies(checked, keys, film, orientation))
        digests = {key_of[path]: digest for path, digest in write_files(copies, destination=self.target)}
        outcome.written = len(digests)
        return PictureResult(outcome, checked.entry(digests))

    def _wanted(self, name: str, lengths: Iterable[int]) -> dict[str, Path]:
        sequences = zip(self.recipe.sequences, lengths, strict=True)
        return {key: self.path(name, key) for one, length in sequences for key in self._keys(one, length)}

    def _keys(self, sequence: PerturbationSequence, length: int) -> list[str]:
        return [f"{self.recipe.folder(sequence)}/{index:02d}" for index in range(length)]

    def path(self, name: str, key: str) -> Path:
        """The file of a frame."""
        folder, _, frame = key.partition("/")
        return self.target / folder / _stem(name) / f"{frame}{FORMATS[self.recipe.file_format][0]}"

    def condition(self, key: str) -> str | None:
        """The first frame counts for its sequence."""
        folder, _, frame = key.partition("/")
        return folder if frame == "00" else None

    def _preset(self, sequence: PerturbationSequence, levels: Tensor) -> str:
        return self.recipe.preset or sequence.preset(*levels.shape[-2:])

    def _frames(self, name: str, sequence: PerturbationSequence, levels: Tensor) -> Iterator[Tensor]:
        recipe = self.recipe
        return sequence.frames(
            levels,
            seed=recipe.seed,
            ids=[picture_id(name)],
            difficulty=recipe.difficulty,
            preset=recipe.preset,
            crop=recipe.crop,
        )

    def _copies(
        self, checked: Checked, keys: list[str], frames: Iterator[Tensor], orientation: int | None
    ) -> Iterator[tuple[Path, bytes]]:
        # Frames are made from the first on even where only later ones are missing: some build on their predecessors.
        for key, frame in zip(keys, frames, strict=True):
            if key not in checked.intact:
                content = encode_picture(to_picture(frame[0]), self.recipe.file_format, orientation=orientation)
                yield self.path(checked.name, key), content


def _load(path: Path, content: bytes, recipe: SequenceRecipe) -> tuple[Tensor, int | None]:
    """A picture as a batch of one, (1, C, H, W), and how it is to be turned for viewing."""
    picture = decode_picture(content, os.fspath(path))
    orientation = picture.getexif().get(ORIENTATION)
    return _levels(resize_and_crop(picture, resize=recipe.resize)), orientation


def _levels(picture: Image.Image) -> Tensor:
    levels = torch.from_numpy(np.array(picture)).reshape(picture.height, picture.width, -1)
    return levels.permute(2, 0, 1)[None]
