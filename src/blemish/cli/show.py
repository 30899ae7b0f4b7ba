"""``blemish show``: a contact sheet of one picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer
from PIL import Image, ImageOps

from blemish.cli.sequence import show_sequence
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.marks import mark_settings
from blemish.corruptions.base import MIN_SIDE, Corruption
from blemish.corruptions.catalog import Catalog
from blemish.corruptions.severity import check_severity
from blemish.data.demo import demo_picture
from blemish.data.pictures import read_picture
from blemish.ops.photographs import MissingFrostError
from blemish.reports.contact_sheet import WORKING_SIDE, contact_sheet, reduced
from blemish.terminal.commands import (
    DEFAULT_SEVERITIES,
    Frost,
    check_frost,
    chosen_catalog,
    chosen_names,
    exit_on_input_error,
    parsed_severities,
    preset_choice,
    say,
)
from blemish.terminal.outputs import Overwrite, check_replaceable

__all__ = ["show_command"]


@exit_on_input_error
def show_command(
    image: Annotated[
        Path | None, typer.Argument(metavar="IMAGE", help="A picture file. Without one, a built-in demo picture.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Where to write the sheet (sheet.png) or the animation (.gif or .webp)."),
    ] = None,
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
    frost: Frost = None,
    sequence: Annotated[
        str | None,
        typer.Option("--sequence", help="Instead of a sheet, animate an ImageNet-P sequence such as p:tilt."),
    ] = None,
    difficulty: Annotated[int, typer.Option(min=1, max=3, help="Of --sequence: 2 and 3 have stronger noise.")] = 1,
    overwrite: Overwrite = False,
) -> None:
    """Draw a contact sheet: every corruption of a picture at every severity.

    Pictures with a shorter side above 224 pixels are reduced to it first, as the published benchmarks do. A sheet or
    animation that blemish made is replaced; another file is not, unless --overwrite is given.

    Examples:

      blemish show

      blemish show cat.jpg -o cat-sheet.png

      blemish show cat.jpg -c fog,snow,blur -s 1,3,5

      blemish show cat.jpg --sequence p:tilt -o tilt.webp
    """
    if sequence is not None:
        if corruptions is not None or severities is not None:
            raise InputError("--sequence stands alone; expected no --corruptions and no --severities with it")
        show_sequence(image, output, sequence, seed=seed, difficulty=difficulty, preset=preset, overwrite=overwrite)
        return
    output = output or Path("sheet.png")
    catalog = chosen_catalog(frost)
    chosen = [catalog[name] for name in chosen_names(corruptions, catalog)]
    levels = [
        check_severity(level) for level in parsed_severities(DEFAULT_SEVERITIES if severities is None else severities)
    ]
    for corruption in chosen:
        corruption.table.at([0], preset or corruption.table.preset(WORKING_SIDE, WORKING_SIDE))
    if output.suffix.lower() not in Image.registered_extensions():
        raise InputError(f"{output}: expected a file name that ends in .png or .jpg")
    if not output.absolute().parent.is_dir():
        raise InputError(f"{output.absolute().parent}: no such folder")
    check_replaceable(output, overwrite=overwrite)
    done = "replaced" if output.is_file() else "wrote"
    # People look at the sheet, so a photograph is turned as its camera says.
    picture = demo_picture() if image is None else ImageOps.exif_transpose(read_picture(image))
    if min(picture.size) < MIN_SIDE:
        raise InputError(f"{image}: {picture.width}×{picture.height} pixels; expected at least {MIN_SIDE}×{MIN_SIDE}")
    picture = reduced(picture, WORKING_SIDE)
    chosen = _makeable(chosen, catalog, by_default=corruptions is None)
    say(preset_choice(chosen[0].table, preset, min(picture.size)), style="dim")
    sheet = contact_sheet(picture, chosen, severities=levels, seed=seed, preset=preset)
    content = io.BytesIO()
    try:
        kind = output.suffix.lower()
        sheet.save(content, Image.registered_extensions()[kind], **mark_settings(kind))
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"cannot write {output}: {error}; expected a file name that ends in .png or .jpg") from error
    write_bytes(output, content.getvalue())
    say(f"{done} {output} ({sheet.width}×{sheet.height} px, {len(chosen)} corruptions)")


def _makeable(chosen: list[Corruption], catalog: Catalog, *, by_default: bool) -> list[Corruption]:
    """The corruptions, refused where files are missing; where nobody asked for frost by name, it may be drawn."""
    try:
        check_frost(chosen)
    except MissingFrostError as error:
        if not by_default:
            raise
        say(f"frost_drawn is shown in place of frost: {error}", style="yellow")
        chosen = [catalog["frost_drawn"] if item.name == "frost" else item for item in chosen]
    return chosen
