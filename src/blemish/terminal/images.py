"""Options for images, the same for every command that reads them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from blemish.core.errors import InputError
from blemish.core.types import Square
from blemish.data.open import open_source
from blemish.data.source import Source, stratified_order

_PANEL = "Images"

Labels = Annotated[
    Path | None, typer.Option("--labels", rich_help_panel=_PANEL, help="Labels, for an array file without them.")
]
Mapping = Annotated[
    str | None,
    typer.Option(
        "--mapping",
        rich_help_panel=_PANEL,
        help="Class order: a .json of {folder: index}, a text with a folder per line, or imagenet for folders that "
        "are named by WordNet ids, ImageNet's class names or their numbers. Default: as many outputs as folders, in "
        "order; or WordNet ids and 1000 outputs.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        rich_help_panel=_PANEL,
        help="Of Parquet files and hf:…: the columns of images and labels, such as img,fine_label. Default: those that "
        "can be meant.",
    ),
]
ClassNames = Annotated[
    str | None,
    typer.Option(
        "--class-names",
        rich_help_panel=_PANEL,
        help="What classes are called in reports, and what zero-shot models are asked for: a text with a name per line "
        "in class order, a .json, or imagenet. Default: the names that the data brings; of ImageNet's WordNet ids, "
        "their English names; of zero-shot models, imagenet.",
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        rich_help_panel=_PANEL,
        help="Only some classes: every:10 for every tenth (of ImageNet: ImageNet-100), names separated by commas, or a "
        "file with a name per line.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit", "-n", min=1, rich_help_panel=_PANEL, help="Use so many images, taken from all classes in proportion."
    ),
]
Resize = Annotated[
    int | None,
    typer.Option(
        "--resize", rich_help_panel=_PANEL, help="First bring the shorter side to this many pixels (ImageNet-C: 256)."
    ),
]
Crop = Annotated[
    int | None,
    typer.Option("--crop", rich_help_panel=_PANEL, help="Then cut a centre square of this side (ImageNet-C: 224)."),
]
SquareSide = Annotated[
    int | None,
    typer.Option(
        "--square",
        rich_help_panel=_PANEL,
        help="Instead of both, bring images to a square of this side, whatever their shape (ImageNet-C-299: 299).",
    ),
]
Centre = Annotated[
    float | None,
    typer.Option(
        "--centre", rich_help_panel=_PANEL, help="Of --square: the share of each side to take (ImageNet-C-299: 0.875)."
    ),
]


_DATA = "Clean images: class folders, .npy or .npz, .tar shards, .parquet, hf:NAME:SPLIT, or demo:digits."


@dataclass(frozen=True, kw_only=True)
class ImageSettings:
    """What can be said of images, besides which they are."""

    labels: Labels = None
    mapping: Mapping = None
    columns: Columns = None
    class_names: ClassNames = None

    def open_named(self, data: str) -> Source:
        """The images of this name."""
        columns = None if self.columns is None else [name.strip() for name in self.columns.split(",")]
        return open_source(
            data, labels=self.labels, mapping=self.mapping, columns=columns, class_names=self.class_names
        )


@dataclass(frozen=True, kw_only=True)
class ImageOptions(ImageSettings):
    """Clean images with labels."""

    data: Annotated[str, typer.Option("--data", "-d", rich_help_panel=_PANEL, help=_DATA)]

    def open(self) -> Source:
        """The images that were named."""
        return self.open_named(self.data)


@dataclass(frozen=True, kw_only=True)
class OptionalImageOptions(ImageSettings):
    """Clean images with labels, or none."""

    data: Annotated[str | None, typer.Option("--data", "-d", rich_help_panel=_PANEL, help=_DATA)] = None

    def open(self) -> Source | None:
        """The images that were named, if any; settings without images are refused."""
        if self.data is not None:
            return self.open_named(self.data)
        given = [field.name for field in fields(ImageSettings) if getattr(self, field.name) != field.default]
        if given:
            raise InputError(f"--{given[0].replace('_', '-')} without --data; expected images that it is for")
        return None


def balanced_part(source: Source, limit: int | None) -> Source:
    """So many of the images, from all classes in proportion, in their own order."""
    if limit is None or limit >= len(source):
        return source
    return source.take(np.sort(stratified_order(source.labels, source.ids)[:limit]))


def chosen_view(crop: int | None, square: int | None, centre: float | None) -> int | Square | None:
    """What is shown of an image: a centre crop, or a square made of it."""
    if square is None:
        if centre is not None:
            raise InputError("--centre without --square; expected the side of the square that the middle is brought to")
        return crop
    if crop is not None:
        raise InputError("--square and --crop; expected one of them")
    return Square(square, 1.0 if centre is None else centre)
