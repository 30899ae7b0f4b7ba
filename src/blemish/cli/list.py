"""``blemish list``: the corruptions there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from blemish.core.errors import InputError
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import catalogue_of
from blemish.corruptions.labels import how_it_moves
from blemish.corruptions.severity import MAX_SEVERITY
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Plugins, chosen_catalog
from blemish.terminal.printing import console, emit, say, show

# Columns of a terminal with room for what corruptions do and for the names of their parameters.
_WIDE = 80


@exit_on_input_error
def list_command(
    words: Annotated[
        list[str] | None, typer.Argument(help="Only those with all of these in their name, family or description.")
    ] = None,
    family: Annotated[str | None, typer.Option(help="Only this family, for example weather.")] = None,
    catalogue: Annotated[
        str | None, typer.Option("--catalogue", help="Only this catalogue: imagenet-c, noc, syn2nat, cbar …")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs instead of a table.")] = False,
    plugins: Plugins = None,
) -> None:
    """List the corruptions by family; with a word or an option, also what each does and its parameters.

    Examples:

      blemish list

      blemish list rain

      blemish list --family weather

      blemish list --catalogue cbar --json

      blemish list --plugin my_corruptions --family mine
    """
    catalog = chosen_catalog(plugins)
    everything = list(catalog.values())
    families = list(dict.fromkeys(corruption.family for corruption in everything))
    catalogues = list(dict.fromkeys(map(catalogue_of, everything)))
    wanted = (("family", family), ("catalogue", catalogue))
    for (kind, name), known in zip(wanted, (families, catalogues), strict=True):
        if name is not None and name not in known:
            raise InputError(f"unknown {kind} {name!r}; expected one of {', '.join(known)}")
    chosen = [
        corruption
        for name in families
        for corruption in everything
        if corruption.family == name
        and family in (None, name)
        and catalogue in (None, catalogue_of(corruption))
        and all(word.lower() in _text(corruption) for word in words or ())
    ]
    if not chosen:
        asked = [*(words or ()), *(f"{kind} {name}" for kind, name in wanted if name is not None)]
        raise InputError(f"no corruption with {' and '.join(asked)} in it; blemish list shows all {len(catalog)}")
    if as_json:
        emit(json.dumps([_entry(corruption) for corruption in chosen], indent=2, ensure_ascii=False) + "\n")
    elif words or family is not None or catalogue is not None:
        show(_table(chosen))
    else:
        show(_overview(chosen))
        say(f"{len(chosen)} corruptions; blemish list WORD says what they do", style="dim")


def _text(corruption: Corruption) -> str:
    return f"{corruption.name} {corruption.family} {corruption.description}".lower()


def _overview(corruptions: list[Corruption]) -> Table:
    """The names of each family."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    table.add_column("family", no_wrap=True)
    table.add_column("corruptions", style="cyan")
    families: dict[str, list[str]] = {}
    for corruption in corruptions:
        families.setdefault(corruption.family, []).append(corruption.name)
    for family, names in families.items():
        table.add_row(family, ", ".join(names))
    return table


def _entry(corruption: Corruption) -> dict[str, object]:
    table = corruption.table
    return {
        "name": corruption.name,
        "family": corruption.family,
        "description": corruption.description,
        "source": corruption.source,
        "version": corruption.version,
        "moves": how_it_moves(corruption.moves),
        "parameters": list(table.names),
        # Row 0 of a table is the identity, whose parameters may be infinite; published severities start at 1.
        "published": corruption.severities,
        "severities": {preset: [list(row) for row in _whole(rows)] for preset, rows in table.rows.items()},
    }


def _whole(rows: Sequence[tuple[float, ...]]) -> Sequence[tuple[float, ...]]:
    """The rows of the severities 1 … 5; a table may have further ones between them."""
    step = (len(rows) - 1) // MAX_SEVERITY
    return rows[step::step]


def _table(corruptions: list[Corruption]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    table.add_column("name", style="cyan", no_wrap=True)
    table.add_column("what it does", ratio=3)
    with_parameters = console().width >= _WIDE
    if with_parameters:
        table.add_column("parameters", style="dim", ratio=2)
    for index, corruption in enumerate(corruptions):
        last = index + 1 == len(corruptions) or corruptions[index + 1].family != corruption.family
        parameters = [", ".join(corruption.table.names)] if with_parameters else []
        table.add_row(corruption.name, corruption.description, *parameters, end_section=last)
    return table
