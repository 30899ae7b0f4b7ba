"""``blemish explore``: a page of this machine on which corruptions are looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blemish.core.class_names import read_class_names
from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog
from blemish.studies.explore.copies import Origin
from blemish.studies.explore.pictures import SIDE, SIDES, pictures_at
from blemish.studies.explore.show import explore, write_page
from blemish.studies.explore.subject import Subject, beginning
from blemish.studies.explore.views import View, Witness
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Corruptions, Frost, Plugins, Seed, Tiles, chosen_catalog, chosen_names
from blemish.terminal.images import ClassNames
from blemish.terminal.models import MODEL_NAMES, ModelSettings
from blemish.terminal.option_groups import spread_options

MOST_SEED = 2**31 - 1
"""The largest seed of the page; scripts of browsers round whole numbers of 64 bits."""


@exit_on_input_error
@spread_options
def explore_command(
    settings: ModelSettings,
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PICTURE or FOLDER]", help="Pictures to look at. Without one, a built-in demo picture."
        ),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", rich_help_panel="Model", help=f"May be repeated. {MODEL_NAMES}"),
    ] = None,
    class_names: ClassNames = None,
    corruptions: Corruptions = None,
    condition: Annotated[
        str | None,
        typer.Option(help="What to begin with: fog@2.5, fog@2+snow@1, or clean. Default: fog@3."),
    ] = None,
    seed: Seed = 0,
    walk: Annotated[
        Path | None, typer.Option("--walk", help="The walk to play, as blemish ccc walk writes it.")
    ] = None,
    side: Annotated[
        int,
        typer.Option(
            min=SIDES[0], max=SIDES[1], help="Larger pictures are resized to 8/7 of it, then cut to a square of it."
        ),
    ] = SIDE,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export",
            "--out",
            "-o",
            metavar="FOLDER",
            help="Write a page that works without a server, at eleven severities, and leave. Default: ImageNet-C.",
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen. Default: any free port.")] = 0,
    show: Annotated[
        bool | None,
        typer.Option("--open/--no-open", help="Open the page in a browser. Default: where there is a desktop."),
    ] = None,
    plugins: Plugins = None,
    frost: Frost = None,
    tiles: Tiles = None,
) -> None:
    """Look at corruptions on a page of this machine: move the severity, compare, see what models say.

    Nothing leaves the machine: the page is served to this machine alone, at an address that nobody can guess.

    Examples:

      blemish explore

      blemish explore cat.jpg -m timm:resnet50

      blemish explore photos -m timm:resnet50 -m timm:vit_base_patch16_224 --condition frost@2

      blemish explore cat.jpg -c noc,fog

      blemish explore cat.jpg -m timm:resnet50 --export page
    """
    if not 0 <= seed <= MOST_SEED:
        raise InputError(f"--seed {seed}; expected 0 … {MOST_SEED}, so that a page can count on")
    catalog = chosen_catalog(plugins, frost, tiles)
    shown = None if corruptions is None else Catalog(*(catalog[name] for name in chosen_names(corruptions, catalog)))
    usual = catalog if shown is None else shown
    begin = beginning(usual, seed) if condition is None else View.of(condition, seed, usual)
    pictures, note = pictures_at(source, side)
    names = None if class_names is None else read_class_names(class_names)
    witnesses = [
        Witness(settings.open_named(name, catalog=catalog, class_names=class_names), names)
        for name in dict.fromkeys(models or ())
    ]
    origin = Origin(tuple(plugins or ()), frost, tiles)
    subject = Subject(pictures, witnesses, catalog, begin, side=side, note=note, shown=shown, origin=origin)
    if export is None:
        explore(subject, walk=walk, port=port, show=show)
    else:
        write_page(export, subject, walk=walk)
