"""Options for corruptions, the same for every command that takes some: which, how severe, and where they come from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from blemish.core.errors import InputError
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalogue_of
from blemish.corruptions.plugins import load_catalog
from blemish.corruptions.severity import DATA_SETS
from blemish.corruptions.transform import preset_rule
from blemish.terminal.lists import listed, numbers
from blemish.terminal.printing import say

DEFAULT_SEVERITIES = (1.0, 2.0, 3.0, 4.0, 5.0)

_corruption_option = typer.Option(
    "--corruption",
    "-c",
    metavar="NAMES",
    help="Names, families or catalogues (noc, cbar …), separated by commas, or all. May be repeated.",
)
Corruptions = Annotated[list[str] | None, _corruption_option]
RequiredCorruptions = Annotated[list[str], _corruption_option]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="CONDITIONS",
        help="Only these conditions: fog,snow@3,*_noise. Separated by commas. May be repeated.",
    ),
]
Severities = Annotated[
    list[str] | None,
    typer.Option("--severity", "-s", metavar="NUMBERS", help="In 0 … 5, separated by commas. May be repeated."),
]
Seed = Annotated[int, typer.Option("--seed", help="Another seed gives other random draws; the same one the same.")]
Preset = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="Severity table: cifar, imagenet64, imagenet, inception; of med: a data set. Default: by the image size.",
    ),
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="PACKAGE.MODULE",
        help="A module with corruptions of your own, installed or in this folder. May be repeated.",
    ),
]
Frost = Annotated[
    Path | None,
    typer.Option(
        "--frost",
        metavar="DIR",
        help='Folder with other photographs for frost. Default: the reference\'s, which "blemish fetch-frost" gets.',
    ),
]


Tiles = Annotated[
    Path | None,
    typer.Option(
        "--tiles",
        metavar="DIR",
        help="Folder with pictures to cut the tiles of laion:mosaic and laion:stickers from. Default: drawn ones.",
    ),
]


def chosen_catalog(plugins: list[str] | None, frost: Path | None = None, tiles: Path | None = None) -> Catalog:
    """All corruptions: ours, those of installed packages and of plugins; with other files where they are named."""
    catalog = load_catalog(plugins or ())
    catalog = catalog if frost is None else catalog.with_frost(frost)
    return catalog if tiles is None else catalog.with_tiles(tiles)


def chosen_names(texts: list[str] | None, catalog: Catalog) -> list[str]:
    """Names of corruptions; a family or a catalogue stands for its members, ``all`` for everything.

    Nothing stands for ImageNet-C.
    """
    if not texts:
        return catalog.plain()
    names: list[str] = []
    for item in listed(texts):
        members = [name for name, unit in catalog.items() if item in (unit.family, catalogue_of(unit), "all")]
        names += members or [catalog[item].name]
    if not names:
        raise InputError("no corruptions named; expected names such as fog,snow")
    return list(dict.fromkeys(names))


def chosen_conditions(texts: list[str] | None) -> list[str]:
    """The patterns that conditions have to match; none where all are meant."""
    patterns = listed(texts)
    if texts and not patterns:
        raise InputError("--only without a condition; expected names such as fog,snow@3,*_noise")
    return patterns


def chosen_severities(texts: list[str] | None) -> list[float] | None:
    """The severities that were typed, if any; their range is checked where they are used."""
    return None if not texts else numbers(texts, "--severity", such_as="1,2,3 or 2.5")


def check_files(corruptions: Iterable[Corruption]) -> None:
    """Refuse corruptions whose files are missing, before any work; say so where they are not the reference's."""
    for corruption in corruptions:
        corruption.check_files()
        if corruption.files is not None and corruption.files.note is not None:
            say(f"{corruption.name}: {corruption.files.note}", style="dim")


def preset_choice(corruptions: Iterable[Corruption], preset: str | None, side: int | None) -> str:
    """Which severity tables are used and why; ``side`` is the images' shorter side, unless they differ."""
    tables = [corruption.table for corruption in corruptions]
    medical = [table for table in tables if table.by_data_set]
    sized = [table for table in tables if table.by_size]
    if not medical and not sized:
        return "severities: one table for all image sizes"
    if preset is not None:
        return f"preset: {preset} (as asked)"
    chosen = []
    if sized:
        table = max(sized, key=lambda table: len(table.rows))
        rule = preset_rule(table)
        at_side = "" if side is None else f"{table.preset(side, side)} ({rule}; here {side} px)"
        chosen.append(at_side or f"for each picture the one {rule}")
    if medical:
        first = ", ".join(name for name in DATA_SETS if any(next(iter(table.rows)) == name for table in medical))
        chosen.append(f"of medical corruptions the first data set that has settings ({first})")
    return "preset: " + "; ".join(chosen)
