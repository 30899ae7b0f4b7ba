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
from blemish.corruptions.severity import MAX_SEVERITY
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Plugins, chosen_catalog
from blemish.terminal.printing import emit, show


@exit_on_input_error
def list_command(
    family: Annotated[str | None, typer.Option(help="Only this family, for example weather.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs instead of a table.")] = False,
    plugins: Plugins = None,
) -> None:
    """List all corruptions: name, family, what each does and its parameters.

    Examples:

      blemish list

      blemish list --family weather

      blemish list --json

      blemish list --plugin my_corruptions --family mine
    """
    catalog = chosen_catalog(plugins)
    families = list(dict.fromkeys(corruption.family for corruption in catalog.values()))
    if family is not None and family not in families:
        raise InputError(f"unknown family {family!r}; expected one of {', '.join(families)}")
    order = families if family is None else [family]
    listed = [corruption for name in order for corruption in catalog.values() if corruption.family == name]
    if as_json:
        emit(json.dumps([_entry(corruption) for corruption in listed], indent=2, ensure_ascii=False) + "\n")
        return
    show(_table(listed))


def _entry(corruption: Corruption) -> dict[str, object]:
    table = corruption.table
    return {
        "name": corruption.name,
        "family": corruption.family,
        "description": corruption.description,
        "source": corruption.source,
        "version": corruption.version,
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
    table.add_column("family", no_wrap=True)
    table.add_column("what it does", ratio=3)
    table.add_column("parameters", style="dim", ratio=2)
    for index, corruption in enumerate(corruptions):
        last = index + 1 == len(corruptions) or corruptions[index + 1].family != corruption.family
        parameters = ", ".join(corruption.table.names)
        table.add_row(corruption.name, corruption.family, corruption.description, parameters, end_section=last)
    return table
