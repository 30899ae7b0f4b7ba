"""``blemish corrupt``: corrupted copies of a picture, a class-folder tree or an array file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from blemish.cli.corrupt_sources import (
    Arrangement,
    LabelFiles,
    LayoutName,
    OnlyPictures,
    PictureColumns,
    check_names_sources,
    opened_pictures,
    say_layout,
)
from blemish.cli.sequence import check_names_a_folder, chosen_sequences, sequence_preset_choice
from blemish.core.errors import InputError
from blemish.core.types import Square
from blemish.data.arrays import ARRAY_SUFFIXES, read_arrays
from blemish.data.formats import picture_format
from blemish.data.pictures import read_picture
from blemish.export import (
    Outcome,
    Recipe,
    corrupt_arrays,
    corrupt_container,
    corrupt_picture,
    corrupt_tree,
    make_recipe,
)
from blemish.export.containers import Container
from blemish.export.layouts import Layout
from blemish.export.sequences import SequenceRecipe, corrupt_sequences, make_sequence_recipe
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import (
    DEFAULT_SEVERITIES,
    Corruptions,
    Frost,
    Plugins,
    Preset,
    Seed,
    Severities,
    Tiles,
    check_files,
    chosen_catalog,
    chosen_names,
    chosen_severities,
    preset_choice,
)
from blemish.terminal.executors import Jobs, Ray, chosen_executor
from blemish.terminal.images import Centre, Crop, Labels, Resize, SquareSide, chosen_view
from blemish.terminal.outputs import check_replaceable
from blemish.terminal.printing import complain, say
from blemish.terminal.progress import with_progress

SOME_FAILED = 1

Work = Callable[..., Outcome]


@exit_on_input_error
def corrupt_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SRC",
            help="A picture, a folder of pictures (class folders, COCO, VOC, Cityscapes or any), .npy or .npz, "
            "Parquet, hf:NAME:SPLIT or a saved dataset, .tsv with base64, or WebDataset shards (.tar).",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder; for one picture also a file name.")],
    corruptions: Corruptions = None,
    severities: Severities = None,
    seed: Seed = 0,
    preset: Preset = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="jpeg (of quality 85, as ImageNet-C was published), jpeg:95, png, webp (lossless) or webp:90. "
            "Default: jpeg; png for Cityscapes and sequences.",
        ),
    ] = None,
    jobs: Jobs = None,
    ray: Ray = None,
    resize: Resize = None,
    crop: Crop = None,
    square: SquareSide = None,
    centre: Centre = None,
    labels: Labels = None,
    plugins: Plugins = None,
    frost: Frost = None,
    tiles: Tiles = None,
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
    layout: LayoutName = None,
    label_files: LabelFiles = "link",
    pictures: OnlyPictures = None,
    columns: PictureColumns = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="When continuing, compare sizes and times of files; by default their digests."),
    ] = False,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Remove the copies of pictures that are gone from SRC; else they are refused."),
    ] = False,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace a picture file. A folder is never replaced, only continued if blemish made it."
        ),
    ] = False,
) -> None:
    """Write corrupted copies of pictures, wherever they are: files, folders, tables, archives or arrays.

    A folder becomes <corruption>/<severity>/… with all folders below, and files of labels beside the copies. An array
    file of N images becomes one <corruption>.npy per corruption, with a block of N images per severity, and labels.npy:
    the layout of CIFAR-10-C. Parquet files and shards become <corruption>/<severity>/<file>, with other columns and
    files as they are, and x.tsv becomes x_<corruption>_<severity>.tsv. Sizes stay what they are. The settings
    are noted in blemish.json, and size and digest of every file in blemish-files.jsonl. Stop whenever you like: the
    same command continues where it stopped, and makes again what is damaged, or of a picture that has changed.

    Examples:

      blemish corrupt cat.jpg -o foggy.png -c fog -s 3

      blemish corrupt imagenet/val -o imagenet-c --resize 256 --crop 224 -j 8

      blemish corrupt cifar10_test.npz -o cifar-10-c -j 4

      blemish corrupt photos -o out -c weather,motion_blur -s 1.5,3 --format png

      blemish corrupt coco -o coco-c --pictures "val2017/*" --preset imagenet -j 8

      blemish corrupt LMUData/MMBench_DEV_EN.tsv -o LMUData-C -s 3 --format jpeg:95

      blemish corrupt imagenet/val -o imagenet-p --sequence benchmark --resize 256 --crop 224 -j 8
    """
    executor = chosen_executor(jobs, ray=ray)
    view = chosen_view(crop, square, centre)
    settings: dict[str, Any] = {"seed": seed, "preset": preset, "resize": resize, "crop": view}
    if file_format is not None:
        settings["file_format"] = str(picture_format(file_format))
    noun, whole = "images", "picture"
    if sequence is not None:
        if corruptions or severities or labels is not None:
            raise InputError("--sequence stands alone; expected no --corruption, --severity or --labels with it")
        check_names_sources(None, layout, pictures, label_files, columns)
        frames = make_sequence_recipe(chosen_sequences(sequence), difficulty=difficulty, **settings)
        _check_source_of_frames(source, out, frames)
        work: Work = partial(corrupt_sequences, source, out, frames, executor=executor, quick=quick, prune=prune)
    else:
        arranged = opened_pictures(source, layout, columns)
        check_names_sources(arranged, layout, pictures, label_files, columns)
        if isinstance(arranged, Layout) and arranged.formats is not None:
            settings.setdefault("file_format", arranged.formats[0])
        catalog = chosen_catalog(plugins, frost, tiles)
        levels = chosen_severities(severities) or DEFAULT_SEVERITIES
        recipe = make_recipe(chosen_names(corruptions, catalog), levels, catalog=catalog, **settings)
        is_array = _check_source_of_copies(source, arranged, out, recipe, labels=labels, overwrite=overwrite)
        again: dict[str, Any] = {"executor": executor, "quick": quick}
        if isinstance(arranged, Container):
            noun, whole = arranged.noun, "file"
            work = partial(corrupt_container, arranged, out, recipe, prune=prune, **again)
        elif arranged is not None:
            some: dict[str, Any] = {"layout": arranged, "labels": label_files, "only": pictures or ()}
            work = partial(corrupt_tree, source, out, recipe, prune=prune, **some, **again)
        elif is_array:
            work = partial(corrupt_arrays, source, out, recipe, labels=labels, **again)
        else:
            work = partial(corrupt_picture, source, out, recipe, quick=quick)
    kept = "finished files are kept. Run the same command again to continue."
    outcome = with_progress("corrupt", lambda report: work(progress=report), first="corrupting", kept=kept)
    _summarise(outcome, out, noun, whole)


def _check_source_of_frames(source: Path, out: Path, recipe: SequenceRecipe) -> None:
    """Refuse what has no sequences, and say which settings are used."""
    if not source.exists():
        raise InputError(f"{source}: no such file or folder")
    if source.is_file() and source.suffix.lower() in ARRAY_SUFFIXES:
        raise InputError(f"{source}: sequences are made of pictures; expected a picture or a folder of class folders")
    check_names_a_folder(out, "frames go to a folder; blemish show --sequence makes an animation")
    side = recipe.crop.side if isinstance(recipe.crop, Square) else recipe.resize
    if side is None and source.is_file():
        side = min(read_picture(source).size)
    say(sequence_preset_choice(recipe.sequences[0], recipe.preset, side), style="dim")


def _check_source_of_copies(
    source: Path,
    arranged: Arrangement,
    out: Path,
    recipe: Recipe,
    *,
    labels: Path | None,
    overwrite: bool,
) -> bool:
    """Refuse what cannot be corrupted, and say which settings are used; whether the source is an array file."""
    if arranged is None and not source.exists():
        raise InputError(f"{source}: no such file or folder")
    is_array = source.suffix.lower() in ARRAY_SUFFIXES and not source.is_dir()
    if labels is not None and not is_array:
        raise InputError("--labels is for array files; the labels of a tree are its folders, or --label-files")
    if is_array or arranged is not None:
        check_names_a_folder(out, "copies of many images go to a folder")
    else:
        check_replaceable(out, overwrite=overwrite)
    if arranged is not None:
        say_layout(arranged, recipe)
    of_one = None if arranged is not None and source.is_file() else source
    say(preset_choice(recipe.corruptions, recipe.preset, _shorter_side(of_one, recipe, is_array)), style="dim")
    check_files(recipe.corruptions)
    return is_array


def _shorter_side(source: Path | None, recipe: Recipe, is_array: bool) -> int | None:
    """The shorter side of all images to be corrupted, if it is the same for all."""
    if is_array and source is not None:
        return int(min(read_arrays(source).images.shape[1:3]))
    side = recipe.crop.side if isinstance(recipe.crop, Square) else recipe.crop or recipe.resize
    return min(read_picture(source).size) if side is None and source is not None and source.is_file() else side


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _summarise(outcome: Outcome, destination: Path, noun: str, whole: str) -> None:
    """Tell what came of it; ``whole`` is what is left out where a picture cannot be used: itself, or its file."""
    kept = f", {outcome.skipped} were there already" if outcome.skipped else ""
    again = f" ({outcome.again} of them again: damaged, or of pictures that have changed)" if outcome.again else ""
    say(f"wrote {_counted(outcome.written, noun.removesuffix('s'))} to {destination}{again}{kept}")
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
    message = f"error: {_counted(len(outcome.failures), whole)} could not be used; all others are done:"
    complain(message, style="red")
    for failure in outcome.failures:
        complain(f"  {failure.name}: {failure.reason}", style="")
    raise typer.Exit(SOME_FAILED)
