"""Where ``blemish corrupt`` finds many pictures: folders of several layouts, tables and archives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blemish.core.errors import InputError
from blemish.data.formats import picture_format
from blemish.export import LAYOUTS, Recipe, find_container, find_layout
from blemish.export.containers import Container
from blemish.export.layouts import Layout
from blemish.terminal.lists import listed
from blemish.terminal.printing import say

_PANEL = "Folders of pictures, and tables"

LayoutName = Annotated[
    str | None,
    typer.Option(
        "--layout",
        rich_help_panel=_PANEL,
        metavar="NAME",
        help=f"Of a folder: {', '.join(LAYOUTS)}. Default: the first of these that fits. tree takes all pictures, and "
        "leaves all other files.",
    ),
]
LabelFiles = Annotated[
    str,
    typer.Option(
        "--label-files",
        rich_help_panel=_PANEL,
        metavar="WAY",
        help="Files of labels of all layouts but tree, beside the copies of every condition: link (a second name of "
        "the same file, which takes no room), copy or none.",
    ),
]
OnlyPictures = Annotated[
    list[str] | None,
    typer.Option(
        "--pictures",
        rich_help_panel=_PANEL,
        metavar="PATTERN",
        help='Only pictures below the folder such as "val2017/*". May be repeated.',
    ),
]
PictureColumns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        rich_help_panel=_PANEL,
        metavar="NAMES",
        help="Of Parquet files and hf:…: the columns of pictures. Default: the one that can be meant.",
    ),
]

Arrangement = Container | Layout | None
"""How many pictures are laid out; None for one picture, and for an array file."""


def opened_pictures(source: Path, layout: str | None, columns: str | None) -> Arrangement:
    """How the pictures of a source are laid out."""
    container = find_container(source, None if columns is None else listed([columns])) if layout is None else None
    if container is not None:
        return container
    return find_layout(source, layout) if source.is_dir() else None


def check_names_sources(
    arranged: Arrangement, layout: str | None, pictures: list[str] | None, label_files: str, columns: str | None
) -> None:
    """Refuse options that mean nothing to a source, rather than leave them unused."""
    if not isinstance(arranged, Layout) and (layout or pictures or label_files != "link"):
        raise InputError("--layout, --pictures and --label-files are for folders of pictures")
    if not isinstance(arranged, Container) and columns is not None:
        raise InputError("--columns is for Parquet files and Hugging Face datasets")


def say_layout(arranged: Container | Layout, recipe: Recipe) -> None:
    """Say how a source is read, and its copies are stored."""
    kind = arranged.name if isinstance(arranged, Container) else f"{arranged.name}, a {arranged.title}"
    chosen = picture_format(recipe.file_format)
    quality = "lossless" if chosen.quality is None else f"of quality {chosen.quality}"
    size = "" if recipe.resize or recipe.crop else ", as large as they are"
    say(f"layout: {kind}; copies are {chosen.kind} {quality}{size}", style="dim")
