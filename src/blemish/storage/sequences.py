"""Perturbation sequences on disk: a tree of class folders as ``<sequence>/<class>/<file stem>/<frame>``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from blemish.corruptions.sequences import DIFFICULTIES, Sequence, sequences
from blemish.data.pictures import list_pictures, picture_id, read_picture, resize_and_crop
from blemish.execution.base import Executor
from blemish.rng import check_seed
from blemish.storage.files import ORIENTATION, check_folder, encode_picture, staged_destination, write_bytes
from blemish.storage.manifest import check_manifest, write_manifest
from blemish.storage.recipe import FORMATS, check_sizes
from blemish.storage.results import Failure, Outcome, Progress
from blemish.storage.trees import changed_since, check_apart, folder_mark, to_picture
from blemish.storage.workers import executor_for, run_tasks
from blemish.types import InputError

__all__ = ["SequenceRecipe", "corrupt_sequences", "make_sequence_recipe"]


@dataclass(frozen=True)
class SequenceRecipe:
    """Which sequences are made of every picture, and how their frames are stored."""

    sequences: tuple[Sequence, ...]
    difficulty: int = 1
    seed: int = 0
    preset: str | None = None
    file_format: str = "png"
    resize: int | None = None
    crop: int | None = None

    def folder(self, sequence: Sequence) -> str:
        """The published name: without the namespace, and a noise with the difficulty it has from 2 on.

        Temporal sequences have the same frames at every difficulty, and so the same folder.
        """
        name = sequence.name.rpartition(":")[2]
        return f"{name}_{self.difficulty}" if sequence.noise and self.difficulty > 1 else name

    def longest(self, sequence: Sequence) -> int:
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
) -> Outcome:
    """Write the frames of one picture, or of every picture below a folder; those that cannot be used are reported.

    Pictures are resized first, and frames cropped last. A picture's id is the hash of ``<class>/<file>``. Finished
    frames are skipped, so a stopped run is continued by running it again; the number of ``jobs`` changes nothing, nor
    does an ``executor`` in their place.
    """
    root, target = Path(source), Path(destination)
    if root.is_file():
        root, names = root.parent, [root.name]
    else:
        names = list_pictures(root)
        check_apart(root, target)
    _check_stems(names)
    workers = executor_for(jobs, executor)
    check_folder(target)
    wanted = {**_protocol(recipe), "source": folder_mark(root)}
    entries = check_manifest(target, wanted, [target / recipe.folder(one) for one in recipe.sequences])
    outcome, left = Outcome(), len(names)
    frames = sum(recipe.longest(sequence) for sequence in recipe.sequences)
    with staged_destination(target):
        write_manifest(target, entries)
        results = run_tasks(_PictureWork(root, target, recipe), names, executor=workers, folder=target)
        with contextlib.closing(results):
            for result in results:
                outcome.add(result)
                left -= 1
                if progress is not None:
                    done = outcome.written + outcome.skipped
                    progress(done, done + left * frames)
    outcome.failures.sort(key=lambda failure: failure.name)
    return outcome


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
    """All sequences of one picture, which is decoded once."""

    root: Path
    target: Path
    recipe: SequenceRecipe

    def __call__(self, name: str) -> Outcome:
        recipe = self.recipe
        outcome = Outcome()
        todo = []
        finished: list[Path] = []
        for sequence in recipe.sequences:
            outputs = self._outputs(name, sequence, recipe.longest(sequence))
            there = [output for output in outputs if output.exists()]
            finished += there
            if len(there) == len(outputs):
                outcome.skipped += len(outputs)
            else:
                todo.append(sequence)
        if (reason := changed_since(self.root / name, finished)) is not None:
            return Outcome(failures=[Failure(name, reason)])
        if not todo:
            return outcome
        try:
            levels, orientation = _load(self.root / name, recipe)
            films = [self._frames(name, sequence, levels) for sequence in todo]
        except InputError as error:
            outcome.failures.append(Failure(name, str(error).removeprefix(f"{self.root / name}: ")))
            return outcome
        outcome.presets[self._preset(todo[0], levels)] += 1
        for sequence, frames in zip(todo, films, strict=True):
            outputs = self._outputs(name, sequence, sequence.length(self._preset(sequence, levels)))
            outcome.add(self._write(frames, outputs, orientation))
        return outcome

    def _preset(self, sequence: Sequence, levels: Tensor) -> str:
        return self.recipe.preset or sequence.preset(*levels.shape[-2:])

    def _frames(self, name: str, sequence: Sequence, levels: Tensor) -> Iterator[Tensor]:
        recipe = self.recipe
        return sequence.frames(
            levels,
            seed=recipe.seed,
            ids=[picture_id(name)],
            difficulty=recipe.difficulty,
            preset=recipe.preset,
            crop=recipe.crop,
        )

    def _write(self, frames: Iterator[Tensor], outputs: list[Path], orientation: int | None) -> Outcome:
        finished = {output for output in outputs if output.exists()}
        outcome = Outcome(skipped=len(finished))
        if len(finished) == len(outputs):
            return outcome
        # Frames are made from the first on even where only later ones are missing: some build on their predecessors.
        for output, frame in zip(outputs, frames, strict=True):
            if output not in finished:
                content = encode_picture(to_picture(frame[0]), self.recipe.file_format, orientation=orientation)
                write_bytes(output, content, destination=self.target)
                outcome.written += 1
        return outcome

    def _outputs(self, name: str, sequence: Sequence, length: int) -> list[Path]:
        folder = self.target / self.recipe.folder(sequence) / _stem(name)
        suffix = FORMATS[self.recipe.file_format][0]
        return [folder / f"{index:02d}{suffix}" for index in range(length)]


def _load(path: Path, recipe: SequenceRecipe) -> tuple[Tensor, int | None]:
    """A picture as a batch of one, (1, C, H, W), and how it is to be turned for viewing."""
    picture = read_picture(path)
    orientation = picture.getexif().get(ORIENTATION)
    return _levels(resize_and_crop(picture, resize=recipe.resize)), orientation


def _levels(picture: Image.Image) -> Tensor:
    levels = torch.from_numpy(np.array(picture)).reshape(picture.height, picture.width, -1)
    return levels.permute(2, 0, 1)[None]
