"""What ``show`` and ``corrupt`` share: pictures to look at, names of folders, and ``--sequence``."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, ImageOps

from blemish.core.errors import InputError
from blemish.corruptions.imagenet_p import PerturbationSequence, sequences
from blemish.corruptions.inputs import MIN_SIDE
from blemish.corruptions.transform import content_id
from blemish.data.arrays import ARRAY_SUFFIXES
from blemish.data.demo import demo_picture
from blemish.data.images import as_picture, picture_batch
from blemish.data.pictures import PICTURE_SUFFIXES, read_picture
from blemish.reports.animation import ANIMATION_SUFFIXES, check_animation_path, write_animation
from blemish.reports.contact_sheet import reduced
from blemish.terminal.lists import listed
from blemish.terminal.outputs import check_replaceable
from blemish.terminal.printing import say

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
    picture = picture_to_show(image, _WORKING_SIDE)
    say(sequence_preset_choice(sequence, preset, min(picture.size)), style="dim")
    frames = sequence.frames(
        picture_batch(picture), seed=seed, ids=[content_id(picture)], difficulty=difficulty, preset=preset
    )
    count = write_animation((as_picture(frame[0]) for frame in frames), target)
    say(f"{done} {target} ({count} frames of {sequence.name})")


def picture_to_show(image: Path | None, side: int) -> Image.Image:
    """A picture to look at, turned as its camera says and with a shorter side of at most ``side``; or the demo's."""
    if image is None:
        return demo_picture(side)
    picture = ImageOps.exif_transpose(read_picture(image))
    if min(picture.size) < MIN_SIDE:
        raise InputError(f"{image}: {picture.width}×{picture.height} pixels; expected at least {MIN_SIDE}×{MIN_SIDE}")
    return reduced(picture, side)


def sequence_preset_choice(sequence: PerturbationSequence, preset: str | None, side: int | None) -> str:
    """Which settings are used and why; ``side`` is the images' shorter side, unless they differ."""
    if preset is not None:
        return f"preset: {preset} (as asked)"
    if side is None:
        return "preset: for each picture the one nearest to its shorter side"
    return f"preset: {sequence.preset(side, side)} (nearest to the shorter side; here {side} px)"
