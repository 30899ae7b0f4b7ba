"""What ``show`` and ``corrupt`` do with ``--sequence``: an animation of one picture, or frames on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from blemish.core.errors import InputError
from blemish.corruptions.imagenet_p import PerturbationSequence, sequences
from blemish.corruptions.inputs import MIN_SIDE
from blemish.corruptions.transform import content_id
from blemish.data.arrays import ARRAY_SUFFIXES
from blemish.data.demo import demo_picture
from blemish.data.pictures import PICTURE_SUFFIXES, read_picture
from blemish.evaluation.executors.base import Executor
from blemish.export.outcome import Outcome, Progress
from blemish.export.sequences import corrupt_sequences, make_sequence_recipe
from blemish.reports.animation import ANIMATION_SUFFIXES, check_animation_path, write_animation
from blemish.reports.contact_sheet import reduced
from blemish.terminal.lists import listed
from blemish.terminal.outputs import check_replaceable
from blemish.terminal.printing import say

__all__ = ["check_names_a_folder", "chosen_sequences", "corrupt_sequence", "show_sequence"]

# The shorter side of the pictures that ImageNet-P's frames are cut from.
_WORKING_SIDE = 256

_FILES = (*PICTURE_SUFFIXES, *ARRAY_SUFFIXES, *ANIMATION_SUFFIXES, ".mp4", ".zip", ".tar", ".gz")


def check_names_a_folder(destination: Path, why: str) -> None:
    """Refuse the name of a file for a folder that is not there yet: somebody expects a file."""
    if destination.suffix.lower() in _FILES and not destination.is_dir():
        raise InputError(f"{destination}: {why}; expected a folder")


def chosen_sequences(text: str) -> list[str]:
    """Names separated by commas; ``benchmark`` stands for the ten of ImageNet-P, ``all`` for the extra ones as well."""
    names: list[str] = []
    for item in listed(text):
        if item in ("all", "benchmark"):
            names += [name for name, member in sequences.items() if item == "all" or not member.extra]
        else:
            names.append(sequences[item].name)
    if not names:
        raise InputError("no sequences named; expected names such as p:tilt,p:snow")
    return list(dict.fromkeys(names))


def show_sequence(
    image: Path | None,
    output: Path | None,
    name: str,
    *,
    seed: int = 0,
    difficulty: int = 1,
    preset: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write one sequence of a picture, or of the demo picture, as an animated GIF or WebP."""
    chosen = chosen_sequences(name)
    if len(chosen) > 1:
        raise InputError(f"{len(chosen)} sequences for one animation; expected one, for example {chosen[0]}")
    sequence = sequences[chosen[0]]
    target = check_animation_path(output or f"{sequence.name.rpartition(':')[2]}.gif")
    check_replaceable(target, overwrite=overwrite)
    done = "replaced" if target.is_file() else "wrote"
    # People look at the animation, so a photograph is turned as its camera says.
    picture = demo_picture(_WORKING_SIDE) if image is None else ImageOps.exif_transpose(read_picture(image))
    if min(picture.size) < MIN_SIDE:
        raise InputError(f"{image}: {picture.width}×{picture.height} pixels; expected at least {MIN_SIDE}×{MIN_SIDE}")
    picture = reduced(picture, _WORKING_SIDE)
    say(_preset_choice(sequence, preset, min(picture.size)), style="dim")
    frames = _frames(picture, sequence, seed=seed, difficulty=difficulty, preset=preset)
    count = write_animation(frames, target)
    say(f"{done} {target} ({count} frames of {sequence.name})")


def corrupt_sequence(
    source: Path,
    destination: Path,
    names: str,
    *,
    difficulty: int = 1,
    seed: int = 0,
    preset: str | None = None,
    file_format: str | None = None,
    resize: int | None = None,
    crop: int | None = None,
    executor: Executor | None = None,
    quick: bool = False,
    prune: bool = False,
) -> Callable[[Progress], Outcome]:
    """Check everything, and return the work: a call with a progress report that writes the frames.

    Frames are PNG unless another format is named: JPEG would add its own changes from frame to frame.
    """
    recipe = make_sequence_recipe(
        chosen_sequences(names),
        difficulty=difficulty,
        seed=seed,
        preset=preset,
        file_format=file_format or "png",
        resize=resize,
        crop=crop,
    )
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    if source.is_file() and source.suffix.lower() in ARRAY_SUFFIXES:
        raise InputError(f"{source}: sequences are made of pictures; expected a picture or a folder of class folders")
    check_names_a_folder(destination, "frames go to a folder; blemish show --sequence makes an animation")
    side = resize if resize is not None or source.is_dir() else min(read_picture(source).size)
    say(_preset_choice(recipe.sequences[0], preset, side), style="dim")

    def work(report: Progress) -> Outcome:
        return corrupt_sequences(
            source, destination, recipe, executor=executor, progress=report, quick=quick, prune=prune
        )

    return work


def _preset_choice(sequence: PerturbationSequence, preset: str | None, side: int | None) -> str:
    """Which settings are used and why; ``side`` is the images' shorter side, unless they differ."""
    if preset is not None:
        return f"preset: {preset} (as asked)"
    if side is None:
        return "preset: for each picture the one nearest to its shorter side"
    return f"preset: {sequence.preset(side, side)} (nearest to the shorter side; here {side} px)"


def _frames(
    picture: Image.Image, sequence: PerturbationSequence, *, seed: int, difficulty: int, preset: str | None
) -> Iterator[Image.Image]:
    levels = torch.from_numpy(np.array(picture)).reshape(1, picture.height, picture.width, -1).permute(0, 3, 1, 2)
    ids = [content_id(picture)]
    for frame in sequence.frames(levels, seed=seed, ids=ids, difficulty=difficulty, preset=preset):
        pixels = frame[0].permute(1, 2, 0).contiguous().numpy()
        yield Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
