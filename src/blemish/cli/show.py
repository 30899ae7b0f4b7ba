"""``blemish show``: a contact sheet of one picture."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer
from PIL import Image

from blemish.cli.sequence import picture_to_show, show_sequence
from blemish.core.errors import InputError, about
from blemish.core.files import write_bytes
from blemish.core.marks import mark_settings
from blemish.core.progress import ProgressReport
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog
from blemish.corruptions.severity import check_severity
from blemish.ops.photographs import MissingFrostError
from blemish.reports.contact_sheet import WORKING_SIDE, contact_sheet
from blemish.reports.gallery import GALLERY_SEVERITIES, gallery_page
from blemish.reports.html import check_report_path
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
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import say
from blemish.terminal.progress import with_progress


@exit_on_input_error
def show_command(
    image: Annotated[
        Path | None, typer.Argument(metavar="IMAGE", help="A picture file. Without one, a built-in demo picture.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="Where to write the sheet (sheet.png), the gallery (gallery.html) or the animation (.gif or .webp).",
        ),
    ] = None,
    corruptions: Corruptions = None,
    severities: Severities = None,
    seed: Seed = 0,
    preset: Preset = None,
    plugins: Plugins = None,
    frost: Frost = None,
    tiles: Tiles = None,
    sequence: Annotated[
        str | None,
        typer.Option("--sequence", help="Instead of a sheet, animate an ImageNet-P sequence such as p:tilt."),
    ] = None,
    gallery: Annotated[
        bool,
        typer.Option(
            "--gallery",
            help="Instead of a sheet, a page: by default all corruptions at severities 1, 3 and 5, with what they do.",
        ),
    ] = False,
    difficulty: Annotated[int, typer.Option(min=1, max=3, help="Of --sequence: 2 and 3 have stronger noise.")] = 1,
    overwrite: Overwrite = False,
) -> None:
    """Draw a contact sheet: corruptions of a picture, by default ImageNet-C's nineteen, at severities 1 to 5.

    Pictures with a shorter side above 224 pixels are reduced to it first, as the published benchmarks do. A sheet or
    animation that blemish made is replaced; another file is not, unless --overwrite is given.

    Examples:

      blemish show

      blemish show cat.jpg -o cat-sheet.png

      blemish show cat.jpg -c fog,snow,blur -s 1,3,5

      blemish show cat.jpg -c cbar

      blemish show cat.jpg --gallery -o gallery.html

      blemish show cat.jpg --sequence p:tilt -o tilt.webp
    """
    if sequence is not None:
        if corruptions or severities or gallery:
            raise InputError("--sequence stands alone; expected no --corruption, --severity and --gallery with it")
        show_sequence(image, out, sequence, seed=seed, difficulty=difficulty, preset=preset, overwrite=overwrite)
        return
    out = out or Path("gallery.html" if gallery else "sheet.png")
    catalog = chosen_catalog(plugins, frost, tiles)
    by_default = not corruptions
    chosen = [catalog[name] for name in chosen_names(corruptions or (["all"] if gallery else None), catalog)]
    usual = GALLERY_SEVERITIES if gallery else DEFAULT_SEVERITIES
    levels = [check_severity(level) for level in chosen_severities(severities) or usual]
    for corruption in chosen:
        with about(corruption.name):
            corruption.table.at([0], preset or corruption.table.preset(WORKING_SIDE, WORKING_SIDE))
    if gallery:
        check_report_path(out)
    elif out.suffix.lower() not in Image.registered_extensions():
        raise InputError(f"{out}: expected a file name that ends in .png or .jpg")
    if not out.absolute().parent.is_dir():
        raise InputError(f"{out.absolute().parent}: no such folder")
    check_replaceable(out, overwrite=overwrite)
    done = "replaced" if out.is_file() else "wrote"
    picture = picture_to_show(image, WORKING_SIDE)
    chosen = _makeable(chosen, catalog, by_default=by_default, gallery=gallery)
    say(preset_choice(chosen, preset, min(picture.size)), style="dim")
    if gallery:

        def work(report: ProgressReport) -> str:
            return gallery_page(picture, chosen, severities=levels, seed=seed, preset=preset, report=report)

        page = with_progress("show", work, first="drawing", unit=None, kept="nothing is written.")
        write_bytes(out, page.encode())
        count = "1 corruption" if len(chosen) == 1 else f"{len(chosen)} corruptions"
        say(f"{done} {out} ({len(page) / 1e6:.1f} MB, {count})")
        return
    sheet = contact_sheet(picture, chosen, severities=levels, seed=seed, preset=preset)
    content = io.BytesIO()
    try:
        kind = out.suffix.lower()
        sheet.save(content, Image.registered_extensions()[kind], **mark_settings(kind))
    except (OSError, KeyError, ValueError) as error:
        raise InputError(f"cannot write {out}: {error}; expected a file name that ends in .png or .jpg") from error
    write_bytes(out, content.getvalue())
    count = "1 corruption" if len(chosen) == 1 else f"{len(chosen)} corruptions"
    say(f"{done} {out} ({sheet.width}×{sheet.height} px, {count})")


def _makeable(chosen: list[Corruption], catalog: Catalog, *, by_default: bool, gallery: bool) -> list[Corruption]:
    """The corruptions, refused where files are missing; where nobody asked for them by name, frost may be drawn.

    A gallery of everything leaves out what cannot be made here, such as streams without a codec, and says so.
    """
    if not by_default:
        check_files(chosen)
        return chosen
    made: dict[str, Corruption] = {}
    for item in chosen:
        try:
            check_files([item])
        except MissingFrostError as error:
            say(f"frost_drawn is shown in place of frost: {error}", style="yellow")
            made.setdefault("frost_drawn", catalog["frost_drawn"])
        except InputError as error:
            if not gallery:
                raise
            say(f"left out: {error}", style="yellow")
        else:
            made.setdefault(item.name, item)
    return list(made.values())
