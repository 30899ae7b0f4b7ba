"""``blemish corrupt``: corrupted copies of a picture, a class-folder tree or an array file."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from blemish.cli.sequence import check_names_a_folder, corrupt_sequence
from blemish.core.errors import InputError
from blemish.data.arrays import ARRAY_SUFFIXES, read_arrays
from blemish.data.pictures import read_picture
from blemish.export import Outcome, Recipe, corrupt_arrays, corrupt_picture, corrupt_tree, make_recipe
from blemish.export import Progress as Report
from blemish.terminal.commands import (
    DEFAULT_SEVERITIES,
    Frost,
    check_frost,
    chosen_catalog,
    chosen_names,
    complain,
    exit_on_input_error,
    parsed_severities,
    preset_choice,
    say,
)
from blemish.terminal.executors import Jobs, Ray, chosen_executor
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.progress import with_progress

__all__ = ["corrupt_command"]

SOME_FAILED = 1


class Format(StrEnum):
    """How pictures are stored."""

    jpeg = "jpeg"
    png = "png"


@exit_on_input_error
def corrupt_command(
    source: Annotated[
        Path, typer.Argument(metavar="SRC", help="A picture, a folder of class folders, or a .npy or .npz file.")
    ],
    destination: Annotated[Path, typer.Argument(metavar="DST", help="A folder; for one picture also a file name.")],
    corruptions: Annotated[
        str | None,
        typer.Option(
            "--corruptions",
            "-c",
            help="Names or families, separated by commas, or all. Default: ImageNet-C's nineteen.",
        ),
    ] = None,
    severities: Annotated[
        str | None,
        typer.Option("--severities", "-s", help="Numbers in 0 … 5, separated by commas. Default: 1,2,3,4,5."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed gives other noise, flakes and angles.")] = 0,
    preset: Annotated[
        str | None, typer.Option(help="Severity table: cifar, imagenet64, imagenet, inception. Default: by image size.")
    ] = None,
    file_format: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="JPEG of quality 85, as ImageNet-C was published, or lossless PNG. Default: jpeg; png for sequences.",
        ),
    ] = None,
    jobs: Jobs = None,
    ray: Ray = None,
    resize: Annotated[
        int | None, typer.Option(help="First bring the shorter side to this many pixels (ImageNet-C: 256).")
    ] = None,
    crop: Annotated[int | None, typer.Option(help="Then cut a centre square of this side (ImageNet-C: 224).")] = None,
    labels: Annotated[Path | None, typer.Option(help="A .npy file of labels, for an array file without them.")] = None,
    frost: Frost = None,
    sequence: Annotated[
        str | None,
        typer.Option(
            "--sequence",
            help="Instead of corruptions, ImageNet-P sequences such as p:tilt,p:snow; or: benchmark, all. "
            "Frames become <sequence>/<class>/<file stem>/<frame>.",
        ),
    ] = None,
    difficulty: Annotated[
        int, typer.Option(min=1, max=3, help="Of --sequence: 2 and 3 have stronger noise; other sequences are strided.")
    ] = 1,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="When continuing, compare sizes and times of files; by default their digests."),
    ] = False,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove the copies of pictures that are gone from SRC; else they are refused."),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write corrupted copies of a picture, a class-folder tree or an array file.

    A tree becomes <corruption>/<severity>/<class>/<file>. An array file of N images becomes one <corruption>.npy
    per corruption, with a block of N images per severity, and labels.npy: the layout of CIFAR-10-C. The settings
    are noted in blemish.json, and size and digest of every file in blemish-files.jsonl. Stop whenever you like: the
    same command continues where it stopped, and makes again what is damaged, or of a picture that has changed.

    Examples:

      blemish corrupt cat.jpg foggy.png -c fog -s 3

      blemish corrupt imagenet/val imagenet-c --resize 256 --crop 224 -j 8

      blemish corrupt cifar10_test.npz cifar-10-c -j 4

      blemish corrupt photos out -c weather,motion_blur -s 1.5,3 --format png

      blemish corrupt imagenet/val imagenet-p --sequence benchmark --resize 256 --crop 224 -j 8
    """
    executor = chosen_executor(jobs, ray=ray)
    if sequence is not None:
        if corruptions is not None or severities is not None or labels is not None:
            raise InputError("--sequence stands alone; expected no --corruptions, --severities or --labels with it")
        work = corrupt_sequence(
            source,
            destination,
            sequence,
            difficulty=difficulty,
            seed=seed,
            preset=preset,
            file_format=None if file_format is None else file_format.value,
            resize=resize,
            crop=crop,
            executor=executor,
            quick=quick,
            prune=prune,
        )
        _summarise(_watched(work), destination)
        return
    catalog = chosen_catalog(frost)
    recipe = make_recipe(
        chosen_names(corruptions, catalog),
        parsed_severities(DEFAULT_SEVERITIES if severities is None else severities),
        seed=seed,
        preset=preset,
        file_format=(file_format or Format.jpeg).value,
        resize=resize,
        crop=crop,
        catalog=catalog,
    )
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    is_array = source.suffix.lower() in ARRAY_SUFFIXES and not source.is_dir()
    if labels is not None and not is_array:
        raise InputError("--labels is for array files; the labels of a tree are its folders")
    if is_array or source.is_dir():
        check_names_a_folder(destination, "copies of many images go to a folder")
    else:
        check_replaceable(destination, overwrite=overwrite)
    say(preset_choice(recipe.corruptions[0].table, preset, _shorter_side(source, recipe, is_array)), style="dim")
    check_frost(recipe.corruptions)

    def work_on_copies(report: Report) -> Outcome:
        if source.is_dir():
            return corrupt_tree(
                source, destination, recipe, executor=executor, progress=report, quick=quick, prune=prune
            )
        if is_array:
            return corrupt_arrays(
                source, destination, recipe, labels=labels, executor=executor, progress=report, quick=quick
            )
        return corrupt_picture(source, destination, recipe, progress=report, quick=quick)

    _summarise(_watched(work_on_copies), destination)


def _watched(work: Callable[[Report], Outcome]) -> Outcome:
    kept = "finished files are kept. Run the same command again to continue."
    return with_progress("corrupt", work, first="corrupting", kept=kept)


def _shorter_side(source: Path, recipe: Recipe, is_array: bool) -> int | None:
    """The shorter side of all images to be corrupted, if it is the same for all."""
    if is_array:
        return int(min(read_arrays(source).images.shape[1:3]))
    side = recipe.crop or recipe.resize
    return min(read_picture(source).size) if side is None and source.is_file() else side


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _summarise(outcome: Outcome, destination: Path) -> None:
    there = f", {outcome.skipped} were there already" if outcome.skipped else ""
    again = f" ({outcome.again} of them again: damaged, or of pictures that have changed)" if outcome.again else ""
    say(f"wrote {_counted(outcome.written, 'image')} to {destination}{again}{there}")
    if outcome.removed:
        say(f"removed {outcome.removed} copies of pictures that are gone")
    for note in outcome.notes:
        say(note, style="yellow")
    if len(outcome.presets) > 1:
        say(
            "presets used: " + ", ".join(f"{name} {count}" for name, count in outcome.presets.most_common()),
            style="dim",
        )
    if not outcome.failures:
        return
    message = f"error: {_counted(len(outcome.failures), 'picture')} could not be used; all others are done:"
    complain(message, style="red")
    for failure in outcome.failures:
        complain(f"  {failure.name}: {failure.reason}", style="")
    raise typer.Exit(SOME_FAILED)
